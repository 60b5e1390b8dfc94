"""Attacks on graphs (the paper's section 6): flips of edges that make classifiers err at some nodes."""

from nodecopy.attacks.base import DICE as DICE
from nodecopy.attacks.base import Attack as Attack
from nodecopy.attacks.base import GlobalDICE as GlobalDICE
from nodecopy.attacks.base import RandomFlips as RandomFlips
from nodecopy.attacks.base import TargetedAttack as TargetedAttack
from nodecopy.attacks.gradients import FGA as FGA
from nodecopy.attacks.gradients import AdaptiveCopyingAttack as AdaptiveCopyingAttack
from nodecopy.attacks.nettack import Nettack as Nettack
from nodecopy.attacks.perturbation import Edits as Edits
from nodecopy.attacks.perturbation import Perturbation as Perturbation
