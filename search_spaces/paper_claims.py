"""All experiments of the paper (Kiyasseh, Zhu and Clifton), and its claims in our words.

Files without `CLAIMS` of their own have these. Sides name the paper's value of every setting that a claim varies; in all
others, compared runs agree.
"""

# ruff: noqa: E501  (a claim is one entry of a table)

from __future__ import annotations

import math
from typing import Any, Final

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side
from clops_sweep.experiment.spaces.claims import Settings
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space

SPACE = [
    *load_spaces(shipped_space("paper")),
    SearchSpace(
        "beta_penalty", RunConfig(dataset="cardiology"), {"beta_penalty": [10.0, 0.0]}, seeds=range(5)
    ),  # for a claim only
]

FRACTIONS: Final = (0.1, 0.25, 0.5, 1.0)
_VARIED: Final = (
    *("task_order", "weight_seed", "storage_fraction", "acquisition_fraction", "acquisition", "mc_samples"),
    *("storage_order", "storage_function", "beta_penalty", "weight_replay", "replay_ratio"),
)
"""Settings that some claim varies."""


def _side(name: str, strategy: str = "clops", **settings: Any) -> Side:
    config = RunConfig(strategy=strategy, **settings)
    used = (*RunConfig.model_fields, *config.options)
    return Side(name, {"strategy": strategy, **{it: config.get(it) for it in _VARIED if it in used}})


CLOPS, FINETUNE = _side("CLOPS"), _side("fine-tuning", "finetune")
GEM, MIR, MTL = _side("GEM", "gem"), _side("MIR", "mir"), _side("MTL", "multitask")
RANDOM_STORAGE = _side("random storage", storage_order="random")
RANDOM_ACQUISITION = _side("random acquisition", acquisition="random")
RANDOM_BOTH = _side("random storage and acquisition", storage_order="random", acquisition="random")
BOTTOM = _side("bottom", storage_order="bottom")
SQUARED = _side("squared area", storage_function="squared_area")
WEIGHTED = _side("weighted replay", weight_replay=True)
SHUFFLED = _side("CLOPS, shuffled", task_order=1)
SHUFFLED_FINETUNE = _side("fine-tuning, shuffled", "finetune", task_order=1)
CURRICULUM, ANTI = (_side(it.replace("_", "-"), task_order=it) for it in ("curriculum", "anti_curriculum"))


def _grid(b: tuple[float, ...] = FRACTIONS, a: tuple[float, ...] = FRACTIONS) -> tuple[Settings, ...]:
    return tuple({"storage_fraction": x, "acquisition_fraction": y} for x in b for y in a)


def _at(**settings: Any) -> Side:
    values = ", ".join(f"{_SYMBOLS[name]} = {value:g}" for name, value in settings.items())
    return _side(f"CLOPS with {values}", **settings)


_SYMBOLS: Final = {"storage_fraction": "b", "acquisition_fraction": "a", "mc_samples": "T", "beta_penalty": "lambda"}
_A: Final = tuple({"acquisition_fraction": a} for a in FRACTIONS)
_B: Final = tuple({"storage_fraction": b} for b in FRACTIONS)
_MORE_B, _LESS_B = _at(storage_fraction=1.0), _at(storage_fraction=0.1)
_MORE_A, _LESS_A = _at(acquisition_fraction=1.0), _at(acquisition_fraction=0.1)
_SMALL: Final = _grid((0.1, 0.25), (0.1, 0.25))
_CHOSEN, _SCORED = _grid(FRACTIONS[:3]), _grid(a=FRACTIONS[:3])
"""Settings in which storage makes a choice (b < 1), and settings in which acquisition does (a < 1)."""
_CURVES, _GRID_AUC = ("curves", "forgetting"), ("heatmap-auc", "difference-auc", "results")
_GRID_BWT: Final = ("heatmap-bwt", "difference-bwt", "results")
_S, _SIMILAR, _RESULTS = ("s", "beta"), ("similarity", "s"), ("results", "metrics")
_FACTOR: Final = math.log(1.1)
"""Smallest relevant difference of log durations: 10 % longer."""


def _above(key: str, where: str, scenario: str, ours: Side, theirs: Side, *measures: str) -> Claim:
    names = {"auc": "average AUC", "bwt": "BWT", "fwt": "FWT"}
    measures = measures or ("auc",)
    sentence = f"{ours.name} is above {theirs.name} in {' and '.join(names[measure] for measure in measures)}"
    contrasts = tuple(Contrast(ours, theirs, measure) for measure in measures)
    return Claim(key, sentence, contrasts, where=where, scenario=scenario)


def _c(key: str, where: str, sentence: str, *contrasts: Contrast, scenario: str = "class_il", **others: Any) -> Claim:
    return Claim(key, sentence, contrasts, where=where, scenario=scenario, **others)


# fmt: off
CLAIMS: Final[tuple[Claim, ...]] = (
    # Class-IL
    _c("class_il_finetune_forgets", "6.1", "Without replay, what was learned is forgotten while later tasks are learned",
       Contrast(None, FINETUNE, "bwt_lambda"), figures=_CURVES),
    _c("class_il_finetune_forgets_at_once", "6.1", "Fine-tuning on the second task ruins the first",
       Contrast(FINETUNE, None, "loss_of_first_task"), figures=_CURVES),
    _c("class_il_finetune_does_not_recover", "6.1", "Fine-tuning ends below what it had reached on the first task",
       Contrast(FINETUNE, None, "loss_of_first_task_in_the_end"), figures=_CURVES),
    _c("class_il_no_drops", "6.1", "With CLOPS, no task drops in AUC as much as with fine-tuning",
       Contrast(FINETUNE, CLOPS, "largest_drop"), figures=_CURVES),
    _c("class_il_worst_task", "6.1", "The final AUC is higher than with fine-tuning, on average and on the worst task",
       Contrast(CLOPS, FINETUNE), Contrast(CLOPS, FINETUNE, "worst_task"), figures=_CURVES),
    _above("class_il_clops_above_finetune", "6.1", "class_il", CLOPS, FINETUNE),
    _above("class_il_clops_above_mtl", "6.1", "class_il", CLOPS, MTL),
    _above("class_il_clops_above_gem", "6.1", "class_il", CLOPS, GEM, "auc", "bwt"),
    _above("class_il_clops_above_mir", "6.1", "class_il", CLOPS, MIR, "auc", "bwt"),
    _c("class_il_constructive", "6.1", "With CLOPS later tasks improve earlier ones: BWT is above 0", Contrast(CLOPS, None, "bwt")),
    _c("class_il_forward", "7", "CLOPS is above GEM and MIR in forward transfer",
       Contrast(CLOPS, GEM, "fwt"), Contrast(CLOPS, MIR, "fwt"), figures=("r", "results")),

    # Time-IL
    _c("time_il_first_epoch", "6.2", "After one epoch on the last term, CLOPS is ahead of fine-tuning",
       Contrast(CLOPS, FINETUNE, "first_epoch_of_last_task"), scenario="time_il", figures=_CURVES),
    _c("time_il_twenty_fold", "6.2", "After one epoch on the last term, CLOPS is as good as fine-tuning after all epochs",
       Contrast(CLOPS, FINETUNE, "first_epoch_of_last_task", "last_epoch_of_last_task"), scenario="time_il", says="not less",
       figures=_CURVES),
    _c("time_il_kept", "6.2", "CLOPS keeps earlier terms while it learns the last one, and fine-tuning does not",
       Contrast(CLOPS, FINETUNE, "kept_during_last_task"), scenario="time_il", figures=_CURVES),
    _c("time_il_on_par", "App. E", "CLOPS is on a par with fine-tuning in average AUC and BWT",
       Contrast(CLOPS, FINETUNE), Contrast(CLOPS, FINETUNE, "bwt"), scenario="time_il", says="same"),
    _above("time_il_mtl_above", "App. E", "time_il", MTL, CLOPS),
    _above("time_il_clops_above_mir", "Abstract, 7", "time_il", CLOPS, MIR),
    _c("time_il_gem_unsolved", "App. E", "GEM's quadratic programmes cannot be solved", Contrast(GEM, None, "unsolved_programmes"),
       scenario="time_il", matters=0.01, figures=_RESULTS),

    # Domain-IL
    _above("domain_il_clops_above_finetune", "6.3", "domain_il", CLOPS, FINETUNE),
    _above("domain_il_clops_above_gem", "6.3", "domain_il", CLOPS, GEM),
    _above("domain_il_clops_above_mir", "6.3", "domain_il", CLOPS, MIR, "auc", "bwt"),
    _c("domain_il_finetune_forgets", "App. E", "Fine-tuning forgets leads while it learns others",
       Contrast(None, FINETUNE, "bwt_lambda"), scenario="domain_il", figures=_CURVES),
    _c("domain_il_opposite_leads", "App. E", "Fine-tuning on lead V1 costs lead I, and costs it more than with CLOPS",
       Contrast(FINETUNE, None, "loss_of_lead_i_to_v1"), Contrast(FINETUNE, CLOPS, "loss_of_lead_i_to_v1"), scenario="domain_il",
       figures=_CURVES),
    _c("domain_il_no_drops", "App. E", "With CLOPS, no lead drops in AUC as much as with fine-tuning",
       Contrast(FINETUNE, CLOPS, "largest_drop"), scenario="domain_il", figures=_CURVES),

    # Effects of the parts of CLOPS
    _c("storage_costs", "6.4", "Storing at random costs average AUC", Contrast(CLOPS, RANDOM_STORAGE, places=_grid()), figures=_GRID_AUC),
    _c("acquisition_costs", "6.4", "Acquiring at random costs average AUC", Contrast(CLOPS, RANDOM_ACQUISITION, places=_SCORED),
       figures=_GRID_AUC),
    _c("both_cost", "6.4", "Storing and acquiring at random costs average AUC", Contrast(CLOPS, RANDOM_BOTH, places=_grid()),
       figures=_GRID_AUC),
    _c("loss_weighting", "6.4", "Weighting the loss by beta raises AUC if everything is stored (b = 1, a = 0.5)",
       Contrast(CLOPS, RANDOM_STORAGE, places=_grid((1.0,), (0.5,))), figures=_GRID_AUC),
    _c("uncertainty", "6.4", "Acquiring by uncertainty raises AUC if little is acquired (b = 0.5, a = 0.1)",
       Contrast(CLOPS, RANDOM_ACQUISITION, places=_grid((0.5,), (0.1,))), figures=_GRID_AUC),
    _c("storage_costs_bwt", "6.4, App. J", "Storing at random costs BWT", Contrast(CLOPS, RANDOM_STORAGE, "bwt", places=_grid()),
       figures=_GRID_BWT),
    _c("acquisition_costs_bwt", "6.4, App. J", "Acquiring at random costs BWT",
       Contrast(CLOPS, RANDOM_ACQUISITION, "bwt", places=_SCORED), figures=_GRID_BWT),
    _c("storage_above_acquisition", "App. J", "Storage affects BWT_lambda more than acquisition if b and a are below 0.5",
       Contrast(RANDOM_ACQUISITION, RANDOM_STORAGE, "bwt_lambda", places=_SMALL), figures=("heatmap-bwt_lambda", *_GRID_BWT)),

    # Amounts of storage and acquisition
    _c("auc_grows_with_b", "4.1, App. I", "Average AUC grows with b", Contrast(_MORE_B, _LESS_B, places=_A), figures=_GRID_AUC),
    _c("auc_grows_with_a", "App. I", "Average AUC grows with a", Contrast(_MORE_A, _LESS_A, places=_B), figures=_GRID_AUC),
    _c("bwt_grows_with_b", "App. I", "BWT grows with b, at a = 0.1", Contrast(_MORE_B, _LESS_B, "bwt", places=_A[:1]),
       figures=_GRID_BWT),
    _c("bwt_grows_with_a", "App. I", "BWT grows with a", Contrast(_MORE_A, _LESS_A, "bwt", places=_B), figures=_GRID_BWT),
    _c("bottleneck", "App. I", "More storage raises AUC more than an equal increase of acquisition",
       *(Contrast(_at(storage_fraction=x, acquisition_fraction=0.1), _at(storage_fraction=0.1, acquisition_fraction=x))
         for x in (0.5, 1.0)), figures=_GRID_AUC),
    _c("little_is_enough", "App. I", "b = 0.25 and a = 0.1 are enough to be above fine-tuning",
       Contrast(_at(storage_fraction=0.25, acquisition_fraction=0.1), FINETUNE), figures=_GRID_AUC),
    _c("storage_takes_time", "4.1", "More storage costs time", Contrast(_MORE_B, _LESS_B, "log_seconds", places=_A),
       matters=_FACTOR, figures=("cost-seconds", "results")),
    _c("acquisition_takes_time", "4.2", "More acquisition costs time", Contrast(_MORE_A, _LESS_A, "log_seconds", places=_B),
       matters=_FACTOR, figures=("cost-seconds", "results")),
    _c("mir_takes_time", "2", "MIR takes longer than CLOPS", Contrast(MIR, CLOPS, "log_seconds"), matters=_FACTOR, figures=_RESULTS),

    # Storage
    _c("top_above_bottom", "App. I", "Storing the easiest is above storing the hardest if b and a are below 0.5",
       Contrast(CLOPS, BOTTOM, places=_SMALL), figures=_GRID_AUC),
    _c("top_as_bottom", "App. I", "Storing the easiest or the hardest makes no difference at b = 0.5",
       Contrast(CLOPS, BOTTOM, places=_grid((0.5,))), says="same", figures=_GRID_AUC),
    _c("top_above_bottom_bwt", "App. I", "Storing the easiest forgets less than storing the hardest",
       Contrast(CLOPS, BOTTOM, "bwt", places=_CHOSEN), figures=_GRID_BWT),
    _c("area_above_squared", "App. H", "Storing by the area under beta is above storing by that under its square",
       Contrast(CLOPS, SQUARED, places=_CHOSEN), figures=_GRID_AUC),
    _c("area_as_good", "4.1, App. H", "Storing by the area under beta is at least as good as by that under its square",
       Contrast(CLOPS, SQUARED, places=_CHOSEN), says="not less", figures=_GRID_AUC),
    _c("final_beta_misleads", "4.1", "Ranking instances by their final beta differs from ranking them by s: correlation below .95",
       Contrast(CLOPS, None, "rank_by_beta_is_not_by_s"), matters=0.05, figures=("beta", "s")),
    _c("penalty_keeps_beta", "4.1", "Without its penalty, beta falls towards 0",
       Contrast(CLOPS.but("with the penalty"), _at(beta_penalty=0.0), "final_beta"), matters=0.05, figures=("beta", "s")),

    # Acquisition and replay
    _c("more_samples", "App. L", "Average AUC and BWT grow with T",
       Contrast(_at(mc_samples=20), _at(mc_samples=5)), Contrast(_at(mc_samples=50), _at(mc_samples=5), "bwt"), figures=_RESULTS),
    _c("samples_saturate", "App. L", "Average AUC does not change from T = 20 on", Contrast(_at(mc_samples=50), _at(mc_samples=20)),
       says="same", figures=_RESULTS),
    _c("mcd_above_mcp", "App. M", "BALD_MCD is above BALD_MCP", Contrast(CLOPS, _side("BALD_MCP", acquisition="bald_mcp")),
       figures=_RESULTS),
    _c("mcd_above_kld", "App. M", "BALD_MCD is above BALC_KLD", Contrast(CLOPS, _side("BALC_KLD", acquisition="balc_kld")),
       figures=_RESULTS),
    *(_c(f"weighting_costs_bwt_{scenario}", "App. K", "Weighting replayed losses by beta costs BWT", Contrast(CLOPS, WEIGHTED, "bwt"),
         scenario=scenario, figures=_RESULTS) for scenario in ("class_il", "time_il", "domain_il")),
    _c("weighting_same_auc", "App. K", "Weighting replayed losses by beta does not change average AUC", Contrast(WEIGHTED, CLOPS),
       says="same", figures=_RESULTS),
    _c("mir_fraction", "App. O", "MIR gains nothing by searching more than a tenth of the buffer",
       Contrast(MIR.but("MIR, a = 1", acquisition_fraction=1.0), MIR.but("MIR, a = 0.1", acquisition_fraction=0.1)), says="same", figures=_RESULTS),
    _c("mir_ratio", "App. O", "MIR is better with half as many replayed as new instances than with four times as many",
       Contrast(MIR.but("MIR, 1:2", replay_ratio=0.5), MIR.but("MIR, 4:1", replay_ratio=4.0)), figures=_RESULTS),

    # Orders of tasks
    _c("robust_to_order", "6.1, App. F", "CLOPS has the same average AUC with the tasks shuffled", Contrast(SHUFFLED, CLOPS),
       says="same", figures=_RESULTS),
    _c("order_matters", "App. F", "Fine-tuning is worse with the tasks shuffled", Contrast(FINETUNE, SHUFFLED_FINETUNE), figures=_RESULTS),
    _c("shuffled_clops_above_finetune", "App. F", "With the tasks shuffled CLOPS is above fine-tuning in average AUC and BWT",
       Contrast(SHUFFLED, SHUFFLED_FINETUNE), Contrast(SHUFFLED, SHUFFLED_FINETUNE, "bwt"), figures=_RESULTS),
    _c("curriculum_bwt", "6.5", "A curriculum has a higher BWT than the default task order", Contrast(CURRICULUM, CLOPS, "bwt"),
       figures=_RESULTS),
    _c("curriculum_above_anti", "6.5", "A curriculum has a higher BWT than an anti-curriculum", Contrast(CURRICULUM, ANTI, "bwt"),
       figures=_RESULTS),
    _c("curriculum_costs_auc", "6.5", "A curriculum has a lower average AUC than the default task order", Contrast(CLOPS, CURRICULUM),
       figures=_RESULTS),

    # Interpretation of s
    _c("tasks_differ", "6.5", "Tasks differ in difficulty: they explain more of the variance of s than equal tasks do by chance",
       Contrast(CLOPS, None, "share_of_s_between_tasks"), matters=0.01, figures=_S),
    _c("s_is_gaussian", "6.5, App. F", "Within a task s has nearly the L-skewness and L-kurtosis of a Gaussian",
       Contrast(None, CLOPS, "distance_from_gaussian"), says="not less", matters=0.0025, figures=_S),
    _c("difficulty_is_of_the_task", "App. F", "The ranking of tasks by s does not depend on the task order",
       Contrast(CLOPS, SHUFFLED, "agreement_of_tasks"), matters=0.1, figures=_S),
    _c("similar_follow", "6.5", "In a curriculum, successive tasks are more similar than in the default order",
       Contrast(CLOPS, None, "similarity_by_curriculum"), figures=_SIMILAR),
    _c("six_seven_is_hard", "6.5", "Task 6-7 is more difficult than task 8-9", Contrast(CLOPS, None, "s_of_89_above_67"), matters=0.01,
       dataset="cardiology", figures=_S),
    _c("eight_nine_is_like_ten_eleven", "App. N", "Task 8-9 is more like task 10-11 than like any other",
       Contrast(CLOPS, None, "similarity_of_89_and_1011"), matters=0.01, dataset="cardiology", figures=_SIMILAR),
    *(_c(f"hard_is_noisy_{scenario}", where, "Instances that are hard to learn look noisy: s grows with the signal-to-noise ratio",
         Contrast(CLOPS, None, "signal_to_noise_by_s"), scenario=scenario, matters=0.1, figures=("tracings", "s"))
      for scenario, where in (("class_il", "6.5"), ("time_il", "App. G"), ("domain_il", "App. G"))),
)
# fmt: on
"""Roughly in the paper's order."""
