from nodecopy.classify.base import Classifier as Classifier
from nodecopy.classify.base import Prediction as Prediction
from nodecopy.classify.base import Trial as Trial
from nodecopy.classify.bayesian import SBMGCN as SBMGCN
from nodecopy.classify.bayesian import BayesianGCN as BayesianGCN
from nodecopy.classify.graph_classifier import GraphClassifier as GraphClassifier
from nodecopy.classify.networks import APPNP as APPNP
from nodecopy.classify.networks import GCN as GCN
from nodecopy.classify.networks import MLP as MLP
from nodecopy.classify.networks import DFNet as DFNet
from nodecopy.classify.own_networks import CustomNetwork as CustomNetwork
from nodecopy.classify.own_networks import ModuleClassifier as ModuleClassifier
from nodecopy.classify.regressions import DGI as DGI
from nodecopy.classify.regressions import SGC as SGC
from nodecopy.classify.regressions import LabelPropagation as LabelPropagation
from nodecopy.classify.self_training import SelfTraining as SelfTraining

__all__: list[str]
CLASSIFIERS: dict[str, str]
