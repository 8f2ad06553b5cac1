"""The public names: what `clops_sweep` offers, and the module that each is imported from on first use."""

from .analysis.update.criteria import Criteria as Criteria
from .analysis.update.report import UpdateReport as UpdateReport
from .api import (
    claims as claims,
    delete as delete,
    differences as differences,
    encode as encode,
    load_model as load_model,
    merge as merge,
    read as read,
    scores as scores,
    seal_claims as seal_claims,
    sweep as sweep,
    update_report as update_report,
    write_report as write_report,
)
from .data.declared.combining import combine as combine
from .data.declared.dataset import dataset as dataset
from .data.declared.formats.ecg_files import from_ecg as from_ecg
from .data.declared.formats.limb_leads import with_limb_leads as with_limb_leads
from .data.declared.formats.mne_reader import from_mne as from_mne
from .data.declared.formats.readers import from_edf as from_edf
from .data.declared.formats.variable_files import from_mat as from_mat
from .data.declared.formats.variable_files import from_npz as from_npz
from .data.declared.one_by_one import Recording as Recording
from .data.declared.recordings import Recordings as Recordings
from .data.files.rhythm_segments import AAMI as AAMI
from .data.frames import FrameSet as FrameSet
from .data.preparing.prepare import data_hash as data_hash, open_frames as open_frames, prepare as prepare
from .data.scenarios import ScenarioTasks as ScenarioTasks, TaskInstances as TaskInstances
from .data.splits.fold_names import folds as folds
from .errors import UsageError as UsageError
from .experiment.config import RunConfig as RunConfig
from .experiment.events import EpochEnd as EpochEnd, RunEnd as RunEnd, TaskEnd as TaskEnd
from .experiment.plugins.decorators import (
    acquisition_function as acquisition_function,
    augmentation as augmentation,
    encoder as encoder,
    network as network,
    observer as observer,
    scenario as scenario,
    storage_function as storage_function,
    strategy as strategy,
)
from .experiment.plugins.options import (
    BoolOption as BoolOption,
    ChoiceOption as ChoiceOption,
    FloatOption as FloatOption,
    IntOption as IntOption,
)
from .experiment.spaces.claims import Claim as Claim, Contrast as Contrast, Side as Side
from .experiment.spaces.distributions import (
    CategoricalDistribution as CategoricalDistribution,
    FloatDistribution as FloatDistribution,
    IntDistribution as IntDistribution,
)
from .experiment.spaces.optuna_search import OptunaSearch as OptunaSearch, SuccessiveHalving as SuccessiveHalving
from .experiment.spaces.search_space import SearchSpace as SearchSpace
from .experiment.spaces.tuning import TuneOn as TuneOn
from .learning import losses as losses, streams as streams
from .learning.batches import (
    Batch as Batch,
    Epoch as Epoch,
    EpochBatch as EpochBatch,
    Instances as Instances,
    Replay as Replay,
)
from .learning.method.batch import FrameBatch as FrameBatch
from .learning.method.ledger import Ledger as Ledger
from .learning.method.frozen import Frozen as Frozen
from .learning.method.memory import Memory as Memory, Reservoir as Reservoir
from .learning.method.strategy import Strategy as Strategy
from .learning.encoders.onnx import OnnxEncoder as OnnxEncoder
from .learning.learners.learner import Learner as Learner
from .learning.learners.penalty import Penalty as Penalty
from .learning.metrics import r_matrix as r_matrix
from .learning.models.model_facts import ModelFacts as ModelFacts
from .learning.models.trained_model import TrainedModel as TrainedModel
from .learning.networks.lora import lora as lora
from .learning.parameters import Parameters as Parameters
from .learning.replay import acquisition as acquisition, division as division, storage as storage
from .learning.run import ContinualRun as ContinualRun
from .learning.method.training import (
    InstanceRecord as InstanceRecord,
    Training as Training,
)
from .learning.strategies.fixed_memory import FixedMemory as FixedMemory
from .execution.outcome import Outcome as Outcome
from .search.trials import read_study as read_study

__version__: str
