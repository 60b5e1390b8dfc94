"""Node copying (the paper's section 3): a sample is a gather of rows.

Read :mod:`.model` first, then :mod:`.donors`, :mod:`.distributions` and :mod:`.rows`.
"""

from nodecopy.copying.distributions import DonorDistribution as DonorDistribution
from nodecopy.copying.distributions import DonorLists as DonorLists
from nodecopy.copying.distributions import DonorRows as DonorRows
from nodecopy.copying.distributions import ExpectedAdjacency as ExpectedAdjacency
from nodecopy.copying.donors import Balanced as Balanced
from nodecopy.copying.donors import DonorRule as DonorRule
from nodecopy.copying.donors import Jaccard as Jaccard
from nodecopy.copying.donors import KeepByDegree as KeepByDegree
from nodecopy.copying.donors import NearestNeighbours as NearestNeighbours
from nodecopy.copying.donors import SameLabel as SameLabel
from nodecopy.copying.donors import Weighted as Weighted
from nodecopy.copying.model import Donors as Donors
from nodecopy.copying.model import NodeCopying as NodeCopying
from nodecopy.copying.model import choose_donors as choose_donors
from nodecopy.copying.model import rank_donors as rank_donors
from nodecopy.copying.networks import sample_like as sample_like
from nodecopy.copying.rows import copy_rows as copy_rows
