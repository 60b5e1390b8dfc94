"""Node classification (the paper's section 5): the Bayesian GCN, and what it is compared with."""

from nodecopy.classify.base import Classifier as Classifier
from nodecopy.classify.base import Prediction as Prediction
from nodecopy.classify.base import Trial as Trial
from nodecopy.classify.bayesian import BayesianGCN as BayesianGCN
from nodecopy.classify.dfnet import DFNet as DFNet
from nodecopy.classify.saving import load as load
from nodecopy.classify.sbm_gcn import SBMGCN as SBMGCN
from nodecopy.classify.single_network import APPNP as APPNP
from nodecopy.classify.single_network import GCN as GCN
from nodecopy.classify.single_network import MLP as MLP
