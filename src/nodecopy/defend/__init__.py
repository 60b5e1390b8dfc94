"""Defences against attacks on graphs (the paper's section 6): classifiers that correct their predictions."""

from nodecopy.defend.adaptive_evidence import AdaptiveEvidenceAttack as AdaptiveEvidenceAttack
from nodecopy.defend.adaptive_networks import AdaptiveNetworkAttack as AdaptiveNetworkAttack
from nodecopy.defend.base import Defence as Defence
from nodecopy.defend.base import correct_trials as correct_trials
from nodecopy.defend.controls import DonorAverage as DonorAverage
from nodecopy.defend.controls import WithoutEdges as WithoutEdges
from nodecopy.defend.copying_correction import CopyingDefence as CopyingDefence
from nodecopy.defend.corrections import AttackedState as AttackedState
from nodecopy.defend.corrections import Correction as Correction
from nodecopy.defend.detection import SuspectCorrection as SuspectCorrection
from nodecopy.defend.distillation import DistilledFeatures as DistilledFeatures
from nodecopy.defend.evidence_defence import EvidenceDefence as EvidenceDefence
from nodecopy.defend.evidence_reports import EdgeReport as EdgeReport
from nodecopy.defend.evidence_reports import NodeReport as NodeReport
from nodecopy.defend.gcn_jaccard import GCNJaccard as GCNJaccard
from nodecopy.defend.gcn_svd import GCNSVD as GCNSVD
from nodecopy.defend.robust_networks import GNNGuard as GNNGuard
from nodecopy.defend.robust_networks import SoftMedianGCN as SoftMedianGCN
from nodecopy.defend.whole_graph_defence import WholeGraphDefence as WholeGraphDefence
