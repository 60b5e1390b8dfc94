"""Inference from one network: standard errors, intervals, tests and comparisons.

Read :mod:`.bootstrapping` first, then :mod:`.null_tests` and :mod:`.graph_differences`.
:mod:`.degree_classes` is the default donor rule, with :mod:`.communities`; :mod:`.directed_copying` uses it
for directed graphs, and :mod:`.node_resampling` samples nodes. :mod:`.measurement` computes statistics,
:mod:`.resampling` those of samples, and :mod:`.intervals` turns them into :mod:`.bootstrap_results`.
:mod:`.sample_store` keeps them on disk. :mod:`.community_stability` finds communities again in samples.
:mod:`.diagnosis` finds reasons for warnings. :mod:`.edge_counts` has an exact variance.
"""

from nodecopy.inference.bootstrapping import bootstrap as bootstrap
from nodecopy.inference.communities import count_communities as count_communities
from nodecopy.inference.communities import spectral_communities as spectral_communities
from nodecopy.inference.comparison import Difference as Difference
from nodecopy.inference.comparison import GraphDifference as GraphDifference
from nodecopy.inference.comparison import compare_graphs as compare_graphs
from nodecopy.inference.donors import DegreeClasses as DegreeClasses
from nodecopy.inference.donors import DirectedCopying as DirectedCopying
from nodecopy.inference.donors import EdgeCountVariance as EdgeCountVariance
from nodecopy.inference.donors import edge_count_variance as edge_count_variance
from nodecopy.inference.nodes import LatentPositionBootstrap as LatentPositionBootstrap
from nodecopy.inference.nodes import NodeBootstrap as NodeBootstrap
from nodecopy.inference.nodes import NodeResampler as NodeResampler
from nodecopy.inference.nodes import NodeSubsampling as NodeSubsampling
from nodecopy.inference.null_tests import SignificanceTest as SignificanceTest
from nodecopy.inference.null_tests import SignificanceTests as SignificanceTests
from nodecopy.inference.null_tests import null_test as null_test
from nodecopy.inference.results import BootstrapResult as BootstrapResult
from nodecopy.inference.results import Diagnostic as Diagnostic
from nodecopy.inference.results import Estimate as Estimate
from nodecopy.inference.stability import CommunityStability as CommunityStability
from nodecopy.inference.stability import community_stability as community_stability
from nodecopy.inference.statistics import statistic_names as statistic_names
