from nodecopy.recommend.base import EmbeddingRecommender as EmbeddingRecommender
from nodecopy.recommend.base import Explanation as Explanation
from nodecopy.recommend.base import Recommender as Recommender
from nodecopy.recommend.baselines import IALS as IALS
from nodecopy.recommend.baselines import ColdItems as ColdItems
from nodecopy.recommend.baselines import ItemKNN as ItemKNN
from nodecopy.recommend.baselines import Popularity as Popularity
from nodecopy.recommend.baselines import WeightedHybrid as WeightedHybrid
from nodecopy.recommend.bpr import BPRMF as BPRMF
from nodecopy.recommend.bpr import MGCCF as MGCCF
from nodecopy.recommend.bpr import EnsembleBPR as EnsembleBPR
from nodecopy.recommend.bpr import LightGCN as LightGCN
from nodecopy.recommend.bpr import SampledGraphBPR as SampledGraphBPR
from nodecopy.recommend.ease import EASE as EASE
from nodecopy.recommend.ease import CopyEASE as CopyEASE

__all__: list[str]
RECOMMENDERS: dict[str, str]
