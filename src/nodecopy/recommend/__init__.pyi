from nodecopy.recommend.base import Recommender as Recommender
from nodecopy.recommend.bpr import BPRRecommender as BPRRecommender
from nodecopy.recommend.bpr import EmbeddingNetwork as EmbeddingNetwork
from nodecopy.recommend.bprmf import BPRMF as BPRMF
from nodecopy.recommend.copy_ease import CopyEASE as CopyEASE
from nodecopy.recommend.ease import EASE as EASE
from nodecopy.recommend.embeddings import EmbeddingRecommender as EmbeddingRecommender
from nodecopy.recommend.ensemble_bpr import EnsembleBPR as EnsembleBPR
from nodecopy.recommend.explanations import Contributions as Contributions
from nodecopy.recommend.explanations import Explanation as Explanation
from nodecopy.recommend.fusion import Fusion as Fusion
from nodecopy.recommend.ials import IALS as IALS
from nodecopy.recommend.item_knn import ItemKNN as ItemKNN
from nodecopy.recommend.lightgcn import LightGCN as LightGCN
from nodecopy.recommend.mgccf import MGCCF as MGCCF
from nodecopy.recommend.popularity import Popularity as Popularity
from nodecopy.recommend.sampled_graph_bpr import SampledGraphBPR as SampledGraphBPR

__all__: list[str]
