"""The library's learners, in the order in which they are listed."""

# ruff: noqa: I001
from koco_stream.learners.linear.ogd import OGD as OGD
from koco_stream.learners.linear.adagrad import AdaGrad as AdaGrad
from koco_stream.learners.linear.nag import NAG as NAG
from koco_stream.learners.linear.ftrl_proximal import FTRLProximal as FTRLProximal
from koco_stream.learners.linear.coin import Coin as Coin
from koco_stream.learners.linear.oja_son import OjaSON as OjaSON
from koco_stream.learners.linear.ons import ONS as ONS
from koco_stream.learners.linear.rp_son import RPSON as RPSON
from koco_stream.learners.linear.fd_learners import (
    FDSON as FDSON,
    RFDSON as RFDSON,
    SAdaGrad as SAdaGrad,
    AdaFD as AdaFD,
)
from koco_stream.learners.kernel.kors import KORS as KORS
from koco_stream.learners.kernel.pros_n_kons import (
    PROSNKONS as PROSNKONS,
    CONKONS as CONKONS,
    BKONS as BKONS,
)
from koco_stream.learners.kernel.kons import KONS as KONS, SketchedKONS as SketchedKONS
from koco_stream.learners.kernel.norma import NORMA as NORMA
from koco_stream.learners.kernel.fogd import FOGD as FOGD
from koco_stream.learners.kernel.nogd import NOGD as NOGD
from koco_stream.learners.kernel.dual_sgd import DualSGD as DualSGD
from koco_stream.learners.kernel.kawv import KAWV as KAWV
from koco_stream.learners.kernel.pkawv import PKAWV as PKAWV
from koco_stream.learners.kernel.pros_n_kons import NONSALD as NONSALD
from koco_stream.learners.constant import Constant as Constant
