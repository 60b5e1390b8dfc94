"""Attacks on graphs (the paper's section 6): flips of edges that make classifiers err at some nodes.

Read :mod:`.base` for the contract and :mod:`.perturbation` for what an attack returns.
"""

from nodecopy.attacks.adaptive import AdaptiveCopyingAttack as AdaptiveCopyingAttack
from nodecopy.attacks.base import Attack as Attack
from nodecopy.attacks.base import TargetedAttack as TargetedAttack
from nodecopy.attacks.dice import DICE as DICE
from nodecopy.attacks.dice import GlobalDICE as GlobalDICE
from nodecopy.attacks.edits import Edits as Edits
from nodecopy.attacks.fga import FGA as FGA
from nodecopy.attacks.nettack import Nettack as Nettack
from nodecopy.attacks.perturbation import Perturbation as Perturbation
from nodecopy.attacks.random_flips import RandomFlips as RandomFlips
