"""Graph models to compare node copying with: first the graph autoencoders, whose means are embeddings.

Read :mod:`.vgae` first; :mod:`.pairs` is their loss over all pairs of nodes without an N x N matrix,
:mod:`.links` how well they predict edges they have not seen.
"""

from nodecopy.generators.dglfrm import DGLFRM as DGLFRM
from nodecopy.generators.dglfrm import DGLFRMB as DGLFRMB
from nodecopy.generators.graphite import Graphite as Graphite
from nodecopy.generators.links import Links as Links
from nodecopy.generators.links import LinkSplit as LinkSplit
from nodecopy.generators.links import link_split as link_split
from nodecopy.generators.vgae import GAE as GAE
from nodecopy.generators.vgae import VGAE as VGAE
