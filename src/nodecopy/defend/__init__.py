"""Defences against attacks on graphs (the paper's section 6): classifiers that correct themselves."""

from nodecopy.defend.base import Correction as Correction
from nodecopy.defend.base import Defence as Defence
from nodecopy.defend.base import corrected_trials as corrected_trials
from nodecopy.defend.copying_correction import CopyingDefence as CopyingDefence
from nodecopy.defend.copying_correction import DonorAverage as DonorAverage
from nodecopy.defend.detection import SuspectCorrection as SuspectCorrection
from nodecopy.defend.pruned_gcn import GCNSVD as GCNSVD
from nodecopy.defend.pruned_gcn import GCNJaccard as GCNJaccard
from nodecopy.defend.without_edges import WithoutEdges as WithoutEdges
