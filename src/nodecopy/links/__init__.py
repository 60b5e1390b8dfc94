"""Missing and doubtful links: which edges a graph lacks, and which of its edges are not credible.

Read :mod:`.predictor` first. :mod:`.signals` computes what speaks for an edge, :mod:`.additive` combines it.
:mod:`.donors` compares donor rules by held-out edges.
"""

from nodecopy.links.donors import RankedDonors as RankedDonors
from nodecopy.links.donors import rank_donors as rank_donors
from nodecopy.links.predictor import DonorLink as DonorLink
from nodecopy.links.predictor import LinkExplanation as LinkExplanation
from nodecopy.links.predictor import LinkPredictor as LinkPredictor
from nodecopy.links.predictor import Links as Links
from nodecopy.links.predictor import Reason as Reason
