"""Inference from one network: standard errors, confidence intervals, tests and comparisons.

Read :mod:`.bootstrapping` first. :mod:`.statistics` computes statistics of a graph and :mod:`.resampling`
those of its samples. :mod:`.donors` has the default donors, :mod:`.diagnosis` the reasons for warnings.
"""

from nodecopy.inference.bootstrapping import BootstrapResult as BootstrapResult
from nodecopy.inference.bootstrapping import Estimate as Estimate
from nodecopy.inference.bootstrapping import GraphDifference as GraphDifference
from nodecopy.inference.bootstrapping import bootstrap as bootstrap
from nodecopy.inference.bootstrapping import compare_graphs as compare_graphs
from nodecopy.inference.diagnosis import Validity as Validity
from nodecopy.inference.donors import ClassCopying as ClassCopying
from nodecopy.inference.donors import DegreeClasses as DegreeClasses
from nodecopy.inference.donors import edge_count_variance as edge_count_variance
from nodecopy.inference.null_tests import SignificanceTests as SignificanceTests
from nodecopy.inference.null_tests import null_test as null_test
from nodecopy.inference.resampling import LatentPositionBootstrap as LatentPositionBootstrap
from nodecopy.inference.resampling import NodeBootstrap as NodeBootstrap
from nodecopy.inference.resampling import NodeSubsampling as NodeSubsampling
from nodecopy.inference.stability import CommunityStability as CommunityStability
from nodecopy.inference.stability import community_stability as community_stability
from nodecopy.inference.statistics import spectral_communities as spectral_communities
from nodecopy.inference.statistics import statistic_names as statistic_names
