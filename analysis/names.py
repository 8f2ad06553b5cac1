"""The public names of `clops_sweep.analysis`."""

from __future__ import annotations

from clops_sweep.experiment.spaces.claims import Claim, Contrast, Side

from .claims.verdicts import Evidence, Verdict, verdicts
from .collect import Cell, Experiment
from .figures.agreement import (
    RankAgreement,
    ReplayOverlap,
    draw_rank_agreement,
    draw_replay_overlap,
    rank_agreement,
    replay_overlap,
)
from .figures.cost import CostFrontier, cost_frontier, draw_cost_frontier
from .figures.curves import LearningCurves, draw_learning_curves, learning_curves
from .figures.differences import difference_heatmap
from .figures.difficulty_figures import Distributions, distributions, draw_distributions, draw_similarity
from .figures.forgetting import Forgetting, draw_forgetting, forgetting
from .figures.heatmaps import Heatmap, Panel, draw_heatmap, heatmap
from .figures.importance import Importance, draw_importance, importance
from .figures.optimization_history import OptimizationHistory, draw_optimization_history, optimization_history
from .figures.pareto import ParetoFront, draw_pareto_front, pareto_front
from .figures.performance import Performance, draw_performance, performance
from .figures.profiles import Profile, draw_profile, profile
from .figures.r_matrices import RMatrix, draw_r_matrices, r_matrix
from .figures.tracings import Tracing, draw_tracings, tracing_of, tracings
from .figures.trajectories import TaskTrajectories, beta_trajectories, draw_trajectories
from .figures.variance import VarianceBySource, variance_by_source
from .metrics import Metric, metric_named
from .people.patient_intervals import PatientInterval, patient_bootstrap
from .people.per_person import per_person
from .report.notebook import open_sweep
from .results import Reference, ResultTable, Row, result_table
from .statistics import (
    Estimate,
    Fold,
    PairedDifference,
    Partition,
    Units,
    estimate,
    estimates,
    holm,
    interval,
    p_above,
    paired_difference,
    paired_differences,
    partitions,
    power_of_t_test,
    splits_needed,
    standard_error,
    units_of,
)
from .tables.comparisons import Comparison, Comparisons, comparisons
from .tables.strategies import StrategyComparison, compare_strategies, draw_strategies

__all__ = [
    "Cell",
    "Claim",
    "Comparison",
    "Comparisons",
    "Contrast",
    "CostFrontier",
    "Distributions",
    "Estimate",
    "Evidence",
    "Experiment",
    "Fold",
    "Forgetting",
    "Heatmap",
    "Importance",
    "LearningCurves",
    "Metric",
    "OptimizationHistory",
    "PairedDifference",
    "Panel",
    "ParetoFront",
    "Partition",
    "PatientInterval",
    "Performance",
    "Profile",
    "RMatrix",
    "RankAgreement",
    "Reference",
    "ReplayOverlap",
    "ResultTable",
    "Row",
    "Side",
    "StrategyComparison",
    "TaskTrajectories",
    "Tracing",
    "Units",
    "VarianceBySource",
    "Verdict",
    "beta_trajectories",
    "compare_strategies",
    "comparisons",
    "cost_frontier",
    "difference_heatmap",
    "distributions",
    "draw_cost_frontier",
    "draw_distributions",
    "draw_forgetting",
    "draw_heatmap",
    "draw_importance",
    "draw_learning_curves",
    "draw_optimization_history",
    "draw_pareto_front",
    "draw_performance",
    "draw_profile",
    "draw_r_matrices",
    "draw_rank_agreement",
    "draw_replay_overlap",
    "draw_similarity",
    "draw_strategies",
    "draw_tracings",
    "draw_trajectories",
    "estimate",
    "estimates",
    "forgetting",
    "heatmap",
    "holm",
    "importance",
    "interval",
    "learning_curves",
    "metric_named",
    "open_sweep",
    "optimization_history",
    "p_above",
    "paired_difference",
    "paired_differences",
    "pareto_front",
    "partitions",
    "patient_bootstrap",
    "per_person",
    "performance",
    "power_of_t_test",
    "profile",
    "r_matrix",
    "rank_agreement",
    "replay_overlap",
    "result_table",
    "splits_needed",
    "standard_error",
    "tracing_of",
    "tracings",
    "units_of",
    "variance_by_source",
    "verdicts",
]
