"""C2LLM: a causal language model whose token states one learned query pools into a unit vector.

The pooling (PMA, "pooling by multihead attention", section 3 of the C2LLM paper) is a block of the Set Transformer: the
query S looks at the states of all tokens, and a small feed-forward part follows. The released family writes it in three
ways, which its config calls `pma_norm_mode`; S, X the token states, A the masked attention, each LN only with `pma_ln`:

    post_normal   O = LN0(S + A(S, X));                         LN1(O + relu(O Wo))
    pre_normal    O = S + A(LNq(S), LNkv(X));                   LNfinal(O + relu(LNo(O) Wo))
    pre_gptj      LNfinal(S + A(LNq(S), LNkv(X)) + relu(LNq(S) Wo))

The paper's own formula adds the projected query S Wq where post_normal adds S: `residual="query"`. In all of them the
scores are divided by the square root of the whole width, not of one head's. Names of parameters are the family's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

NORM_MODES = ("post_normal", "pre_normal", "pre_gptj")
RESIDUALS = ("seed", "query")
LAST = -1
"""The layer whose states the head reads by default: the last one, after the backbone's final norm."""
_TINY = 1e-12


@dataclass(frozen=True)
class HeadConfig:
    """A PMA head. Raises ValueError, with a message that names the field, for one that does not exist."""

    backbone_dim: int
    """Width of the token states."""
    dim: int
    """Width of the head and of the embedding."""
    heads: int
    norm_mode: str = "post_normal"
    """Where the LayerNorms stand, one of NORM_MODES."""
    layer_norms: bool = True
    """Whether there are any."""
    residual: str = "seed"
    """What the attention is added to, one of RESIDUALS."""
    layer: int = LAST
    """How many of the backbone's layers the token states went through; LAST for all and the final norm."""

    def __post_init__(self) -> None:
        if self.norm_mode not in NORM_MODES:
            raise ValueError(f"norm_mode {self.norm_mode!r} is none of {', '.join(NORM_MODES)}")
        if self.residual not in RESIDUALS:
            raise ValueError(f"residual {self.residual!r} is none of {', '.join(RESIDUALS)}")
        if self.residual == "query" and self.norm_mode != "post_normal":
            raise ValueError(f"residual 'query' goes with norm_mode 'post_normal', not {self.norm_mode!r}")
        if self.heads < 1 or self.dim < 1 or self.dim % self.heads:
            raise ValueError(f"heads {self.heads} do not divide dim {self.dim}")
        if self.norm_mode != "post_normal" and self.layer_norms and self.dim != self.backbone_dim:
            raise ValueError(
                f"norm_mode {self.norm_mode!r} needs dim {self.dim} to be the backbone's {self.backbone_dim}"
            )


class _Block(nn.Module):
    """What the three ways share: the projections and the attention of the query over the token states."""

    def __init__(self, config: HeadConfig, norms: tuple[str, ...]):
        super().__init__()
        self.heads = config.heads
        self.fc_q = nn.Linear(config.dim, config.dim)
        self.fc_k = nn.Linear(config.backbone_dim, config.dim)
        self.fc_v = nn.Linear(config.backbone_dim, config.dim)
        self.fc_o = nn.Linear(config.dim, config.dim)
        for name in norms:
            setattr(self, name, nn.LayerNorm(config.dim) if config.layer_norms else nn.Identity())

    def attend(self, query: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """The projected `query` [1 or batch, 1, dim] over `states` [batch, tokens, width] -> [batch, 1, dim]."""
        keys, values = self._split(self.fc_k(states)), self._split(self.fc_v(states))
        seen = mask[:, None, None, :]
        scores = self._split(query) @ keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1) * seen
        return (weights @ values).transpose(1, 2).flatten(2)

    def _split(self, rows: Tensor) -> Tensor:
        """[batch, tokens, dim] -> [batch, heads, tokens, dim / heads]."""
        return rows.view(*rows.shape[:2], self.heads, -1).transpose(1, 2)


class _PostNormal(_Block):
    ln0: nn.Module
    ln1: nn.Module

    def __init__(self, config: HeadConfig):
        super().__init__(config, ("ln0", "ln1"))
        self.adds_query = config.residual == "query"

    def forward(self, seed: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        query = self.fc_q(seed)
        pooled = self.ln0((query if self.adds_query else seed) + self.attend(query, states, mask))
        out: Tensor = self.ln1(pooled + self.fc_o(pooled).relu())
        return out


class _PreNormal(_Block):
    ln_q: nn.Module
    ln_kv: nn.Module
    ln_o: nn.Module
    ln_final: nn.Module

    def __init__(self, config: HeadConfig):
        super().__init__(config, ("ln_q", "ln_kv", "ln_o", "ln_final"))

    def forward(self, seed: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        pooled = seed + self.attend(self.fc_q(self.ln_q(seed)), self.ln_kv(states), mask)
        out: Tensor = self.ln_final(pooled + self.fc_o(self.ln_o(pooled)).relu())
        return out


class _PreGptj(_Block):
    ln_q: nn.Module
    ln_kv: nn.Module
    ln_final: nn.Module

    def __init__(self, config: HeadConfig):
        super().__init__(config, ("ln_q", "ln_kv", "ln_final"))

    def forward(self, seed: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        query = self.ln_q(seed)
        pooled = seed + self.attend(self.fc_q(query), self.ln_kv(states), mask)
        out: Tensor = self.ln_final(pooled + self.fc_o(query).relu())
        return out


_BLOCKS = {"post_normal": _PostNormal, "pre_normal": _PreNormal, "pre_gptj": _PreGptj}


class PMA(nn.Module):
    """The head: token states -> one vector, not yet of unit length."""

    def __init__(self, config: HeadConfig):
        super().__init__()
        self.config = config
        self.S = nn.Parameter(torch.empty(1, 1, config.dim))
        self.mab = _BLOCKS[config.norm_mode](config)
        nn.init.xavier_uniform_(self.S)
        for linear in (self.mab.fc_q, self.mab.fc_k, self.mab.fc_v, self.mab.fc_o):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """`states` [batch, tokens, backbone_dim], `mask` bool [batch, tokens] -> [batch, dim]."""
        pooled: Tensor = self.mab(self.S, states.to(self.S.dtype), mask).squeeze(1)
        return pooled


def new_head(config: HeadConfig, seed: int = 0) -> PMA:
    """A fresh head; the same seed gives the same one and leaves the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PMA(config)


class C2LLM(nn.Module):
    """The embedder: `backbone` (a transformers Qwen2Model, eager or sdpa attention) and `head`."""

    def __init__(self, backbone: Any, head: PMA):
        super().__init__()
        self.backbone = backbone
        self.head = head

    @property
    def dim(self) -> int:
        """Width of the embedding."""
        return self.head.config.dim

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Both int64 [batch, tokens], 1 in the mask for a token and 0 for padding -> unit vectors float32 [batch, dim].

        Neither padding, on whatever side, nor the other rows of the batch change a vector.
        """
        mask = attention_mask.bool()
        pooled = self.head(self.states(input_ids, attention_mask), mask)
        return nn.functional.normalize(pooled.float(), dim=-1, eps=_TINY)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The token states that the head reads, [batch, tokens, backbone_dim]; 0 where there is padding."""
        layer = self.head.config.layer
        mask = attention_mask.bool()
        out = self.backbone(
            input_ids=input_ids,
            # A mask that is made already is taken as it is, by every version of transformers.
            attention_mask={"full_attention": _causal(mask, self.backbone.dtype)},
            position_ids=(attention_mask.cumsum(-1) - 1).clamp_min(0),
            use_cache=False,
            output_hidden_states=layer != LAST,
        )
        states: Tensor = out.last_hidden_state if layer == LAST else out.hidden_states[layer]
        return states.masked_fill(~mask.unsqueeze(-1), 0)


def _causal(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to attention scores, [batch, 1, tokens, tokens]: 0 where a token may look, else the lowest number.

    (Not minus infinity: a padded place may look nowhere, and its softmax has to stay finite.)
    """
    tokens = mask.shape[1]
    place = torch.arange(tokens, device=mask.device)
    may = (place[:, None] >= place[None, :]) & mask[:, None, None, :]
    return torch.zeros(may.shape, dtype=dtype, device=mask.device).masked_fill(~may, torch.finfo(dtype).min)
