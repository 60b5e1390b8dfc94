from nodecopy.generators.cell import CELL as CELL
from nodecopy.generators.classical import BarabasiAlbert as BarabasiAlbert
from nodecopy.generators.classical import BlockConfigurationModel as BlockConfigurationModel
from nodecopy.generators.classical import ChungLu as ChungLu
from nodecopy.generators.classical import ConfigurationModel as ConfigurationModel
from nodecopy.generators.classical import ErdosRenyi as ErdosRenyi
from nodecopy.generators.dglfrm import DGLFRM as DGLFRM
from nodecopy.generators.dglfrm import DGLFRMB as DGLFRMB
from nodecopy.generators.dot_product import RandomDotProduct as RandomDotProduct
from nodecopy.generators.graphite import Graphite as Graphite
from nodecopy.generators.link_prediction import EdgeSplit as EdgeSplit
from nodecopy.generators.link_prediction import HeldOutEdges as HeldOutEdges
from nodecopy.generators.link_prediction import split_edges as split_edges
from nodecopy.generators.mmsbm import MMSBM as MMSBM
from nodecopy.generators.netgan import NetGAN as NetGAN
from nodecopy.generators.sbm import SBM as SBM
from nodecopy.generators.sbm import DegreeCorrectedSBM as DegreeCorrectedSBM
from nodecopy.generators.vgae import GAE as GAE
from nodecopy.generators.vgae import VGAE as VGAE

__all__: list[str]
