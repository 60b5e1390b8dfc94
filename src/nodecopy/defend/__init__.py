"""Defences against attacks on graphs (the paper's section 6): classifiers that correct their predictions."""

from nodecopy.defend.base import AttackedState as AttackedState
from nodecopy.defend.base import Correction as Correction
from nodecopy.defend.base import Defence as Defence
from nodecopy.defend.controls import GCNSVD as GCNSVD
from nodecopy.defend.controls import DistilledFeatures as DistilledFeatures
from nodecopy.defend.controls import DonorAverage as DonorAverage
from nodecopy.defend.controls import GCNJaccard as GCNJaccard
from nodecopy.defend.controls import WithoutEdges as WithoutEdges
from nodecopy.defend.copying import CopyingDefence as CopyingDefence
from nodecopy.defend.evidence import AdaptiveEvidenceAttack as AdaptiveEvidenceAttack
from nodecopy.defend.evidence import EdgeReport as EdgeReport
from nodecopy.defend.evidence import EvidenceDefence as EvidenceDefence
from nodecopy.defend.evidence import NodeReport as NodeReport
from nodecopy.defend.robust_networks import AdaptiveNetworkAttack as AdaptiveNetworkAttack
from nodecopy.defend.robust_networks import GNNGuard as GNNGuard
from nodecopy.defend.robust_networks import SoftMedianGCN as SoftMedianGCN
from nodecopy.defend.unknown import SuspectCorrection as SuspectCorrection
from nodecopy.defend.unknown import WholeGraphDefence as WholeGraphDefence
