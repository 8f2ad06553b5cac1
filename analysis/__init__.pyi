"""The public names, and the module that each is imported from on first use."""

from .claims.verdicts import Evidence as Evidence, Verdict as Verdict, verdicts as verdicts
from .collect import Cell as Cell, Experiment as Experiment
from .figures.beta.agreement import (
    RankAgreement as RankAgreement,
    ReplayOverlap as ReplayOverlap,
    draw_rank_agreement as draw_rank_agreement,
    draw_replay_overlap as draw_replay_overlap,
    rank_agreement as rank_agreement,
    replay_overlap as replay_overlap,
)
from .figures.cost import (
    CostFrontier as CostFrontier,
    cost_frontier as cost_frontier,
    draw_cost_frontier as draw_cost_frontier,
)
from .figures.curves import (
    LearningCurves as LearningCurves,
    draw_learning_curves as draw_learning_curves,
    learning_curves as learning_curves,
)
from .figures.differences import difference_heatmap as difference_heatmap
from .figures.beta.difficulty_figures import (
    Distributions as Distributions,
    distributions as distributions,
    draw_distributions as draw_distributions,
    draw_similarity as draw_similarity,
)
from .figures.forgetting import Forgetting as Forgetting, draw_forgetting as draw_forgetting, forgetting as forgetting
from .figures.heatmaps import Heatmap as Heatmap, Panel as Panel, draw_heatmap as draw_heatmap, heatmap as heatmap
from .figures.importance import Importance as Importance, draw_importance as draw_importance, importance as importance
from .figures.optimization_history import (
    OptimizationHistory as OptimizationHistory,
    draw_optimization_history as draw_optimization_history,
    optimization_history as optimization_history,
)
from .figures.pareto import (
    ParetoFront as ParetoFront,
    draw_pareto_front as draw_pareto_front,
    pareto_front as pareto_front,
)
from .figures.performance import (
    Performance as Performance,
    draw_performance as draw_performance,
    performance as performance,
)
from .figures.profiles import Profile as Profile, draw_profile as draw_profile, profile as profile
from .figures.r_matrices import RMatrix as RMatrix, draw_r_matrices as draw_r_matrices, r_matrix as r_matrix
from .figures.beta.tracings import (
    Tracing as Tracing,
    draw_tracings as draw_tracings,
    tracings as tracings,
)
from .figures.beta.trajectories import (
    TaskTrajectories as TaskTrajectories,
    beta_trajectories as beta_trajectories,
    draw_trajectories as draw_trajectories,
)
from .figures.variance import VarianceBySource as VarianceBySource, variance_by_source as variance_by_source
from .metrics import Metric as Metric, metric_named as metric_named
from .people.patient_intervals import PatientInterval as PatientInterval, patient_bootstrap as patient_bootstrap
from .people.per_person import per_person as per_person
from .report.notebook import open_sweep as open_sweep
from .report.plots import (
    plot_cost_frontier as plot_cost_frontier,
    plot_forgetting as plot_forgetting,
    plot_heatmap as plot_heatmap,
    plot_importance as plot_importance,
    plot_learning_curves as plot_learning_curves,
    plot_methods as plot_methods,
    plot_metrics as plot_metrics,
    plot_optimization_history as plot_optimization_history,
    plot_r_matrices as plot_r_matrices,
    plot_slices as plot_slices,
    plot_variance as plot_variance,
)
from .results import Reference as Reference, ResultTable as ResultTable, Row as Row, result_table as result_table
from .statistics import (
    Estimate as Estimate,
    Fold as Fold,
    PairedDifference as PairedDifference,
    Partition as Partition,
    Units as Units,
    estimate as estimate,
    estimates as estimates,
    holm as holm,
    interval as interval,
    p_above as p_above,
    paired_difference as paired_difference,
    paired_differences as paired_differences,
    partitions as partitions,
    power_of_t_test as power_of_t_test,
    splits_needed as splits_needed,
    standard_error as standard_error,
    units_of as units_of,
)
from .tables.comparisons import Comparison as Comparison, Comparisons as Comparisons, comparisons as comparisons
from .tables.strategies import (
    StrategyComparison as StrategyComparison,
    compare_strategies as compare_strategies,
    draw_strategies as draw_strategies,
)
