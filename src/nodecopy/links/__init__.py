"""Missing and doubtful links: which edges a graph lacks, and which of its edges are not credible.

Read :mod:`.predictor` first. :mod:`.signals` computes what speaks for an edge, and combines it.
"""

from nodecopy.links.predictor import LinkExplanation as LinkExplanation
from nodecopy.links.predictor import LinkPredictor as LinkPredictor
from nodecopy.links.predictor import Links as Links
