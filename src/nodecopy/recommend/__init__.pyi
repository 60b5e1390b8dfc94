from nodecopy.recommend.base import Recommender as Recommender
from nodecopy.recommend.baselines import ItemKNN as ItemKNN
from nodecopy.recommend.baselines import Popularity as Popularity
from nodecopy.recommend.bpr import BPRMF as BPRMF
from nodecopy.recommend.bpr import BPRRecommender as BPRRecommender
from nodecopy.recommend.bpr import EmbeddingNetwork as EmbeddingNetwork
from nodecopy.recommend.copy_ease import CopyEASE as CopyEASE
from nodecopy.recommend.ease import EASE as EASE
from nodecopy.recommend.embeddings import EmbeddingRecommender as EmbeddingRecommender
from nodecopy.recommend.ensemble_bpr import EnsembleBPR as EnsembleBPR
from nodecopy.recommend.ensemble_bpr import SampledGraphBPR as SampledGraphBPR
from nodecopy.recommend.fusion import Fusion as Fusion
from nodecopy.recommend.ials import IALS as IALS
from nodecopy.recommend.lightgcn import LightGCN as LightGCN
from nodecopy.recommend.mgccf import MGCCF as MGCCF

__all__: list[str]
