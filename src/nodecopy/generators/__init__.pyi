from nodecopy.generators.autoencoders import DGLFRM as DGLFRM
from nodecopy.generators.autoencoders import DGLFRMB as DGLFRMB
from nodecopy.generators.autoencoders import GAE as GAE
from nodecopy.generators.autoencoders import VGAE as VGAE
from nodecopy.generators.autoencoders import Graphite as Graphite
from nodecopy.generators.base import split_edges as split_edges
from nodecopy.generators.blocks import MMSBM as MMSBM
from nodecopy.generators.blocks import SBM as SBM
from nodecopy.generators.blocks import DegreeCorrectedSBM as DegreeCorrectedSBM
from nodecopy.generators.classical import BarabasiAlbert as BarabasiAlbert
from nodecopy.generators.classical import BlockConfigurationModel as BlockConfigurationModel
from nodecopy.generators.classical import ChungLu as ChungLu
from nodecopy.generators.classical import ConfigurationModel as ConfigurationModel
from nodecopy.generators.classical import ErdosRenyi as ErdosRenyi
from nodecopy.generators.classical import RandomDotProduct as RandomDotProduct
from nodecopy.generators.walks import CELL as CELL
from nodecopy.generators.walks import NetGAN as NetGAN

__all__: list[str]
