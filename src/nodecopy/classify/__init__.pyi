from nodecopy.classify.appnp import APPNP as APPNP
from nodecopy.classify.base import Classifier as Classifier
from nodecopy.classify.bayesian import BayesianGCN as BayesianGCN
from nodecopy.classify.custom_network import CustomNetwork as CustomNetwork
from nodecopy.classify.dfnet import DFNet as DFNet
from nodecopy.classify.dgi import DGI as DGI
from nodecopy.classify.ensemble import Prediction as Prediction
from nodecopy.classify.gcn import GCN as GCN
from nodecopy.classify.graph_classifier import GraphClassifier as GraphClassifier
from nodecopy.classify.label_propagation import LabelPropagation as LabelPropagation
from nodecopy.classify.mlp import MLP as MLP
from nodecopy.classify.module_classifier import ModuleClassifier as ModuleClassifier
from nodecopy.classify.network_classifier import NetworkClassifier as NetworkClassifier
from nodecopy.classify.sbm_gcn import SBMGCN as SBMGCN
from nodecopy.classify.self_training import SelfTraining as SelfTraining
from nodecopy.classify.sgc import SGC as SGC
from nodecopy.classify.soft_voting import SoftVoting as SoftVoting
from nodecopy.classify.trial import Trial as Trial

__all__: list[str]
