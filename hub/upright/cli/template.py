"""Template: the ``upright.toml`` that ``upright init`` writes; every key stands there, with a word.

A line that begins with ``#`` and no space is a setting that is switched off; its value is the
default, where there is one.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from upright.settings.shape import DeadlinesSection, Limits, LivesSection, RetentionSection
from upright.settings.spending import UNITS, BudgetsSection, CapSection

Section = Limits | DeadlinesSection | LivesSection | RetentionSection

_HEAD: Final = """\
# Upright's configuration. Flags win over the environment (UPRIGHT_HUB_PORT=…), that over this file.
# `upright doctor` shows each value and where it came from.
# Secrets are references: "keyring:NAME" (upright secret set NAME), "env:NAME" or "file:PATH".

# Bots that may bring something at all, as "source:id"; others are ignored.
#bots = ["github:dependabot[bot]"]
# Bots that count as members: your own CI, say. What they bring may start work.
#trusted_bots = ["github:app:15368"]

[hub]
# Where the hub listens. Behind a proxy that ends TLS, this stays loopback.
#host = "127.0.0.1"
#port = 8765
# How providers and devices reach it from outside.
#public_url = "https://hub.example.org"
#name = "upright"
# Where it keeps its files; below UPRIGHT_HOME when it isn't absolute.
#state_dir = "."

[database]
# Below the state folder when it isn't absolute.
#path = "upright.db"
# Or PostgreSQL, with `pip install 'upright[postgres]'`; make the empty database first.
#url = "postgresql://upright@db.example.org/upright"
#password = "keyring:database"

# An OpenAI-compatible endpoint. Without one the hub still takes triggers in, and holds them.
# OPENAI_API_KEY alone means OpenAI's own; UPRIGHT_MODEL_URL names another.
[model]
#base_url = "http://127.0.0.1:11434/v1"
#name = "a-model"
#api_key = "keyring:model"
# Bounds of one call, in seconds: to the first byte, between two, in all; and how often it is tried.
#first_byte_s = 300.0
#idle_s = 120.0
#whole_s = 1800.0
#tries = 4

# Another model for one role, at an endpoint of its own where base_url says so.
#[model.router]
#name = "a-small-model"
#[model.worker]
#name = "a-strong-model"
#base_url = "https://models.example.org/v1"
#api_key = "keyring:worker-model"
#[model.advisor]
#name = "the-smallest-model"
#[model.memory]
#name = "a-small-model"
#[model.compaction]
#name = "a-small-model"

# What a model costs, in dollars a million tokens, where our own list has no price for it, or
# another one; cached is input when it isn't given.
#[prices."a-strong-model"]
#input = 1.25
#cached = 0.125
#output = 10.0

[logs]
# debug, info, warning or error; auto is for people on a terminal, JSON lines elsewhere.
#level = "info"
#format = "auto"

# A source: its connector, what it may bring (explicit_only, candidates, off), and the kind's keys.
# `upright source add NAME KIND key=value…` writes one; enabled = false keeps it and loads nothing.
# Its webhooks go to https://YOUR-HUB/hooks/NAME.
#[sources.github]
#connector = "github"
#mode = "candidates"
#secret = "keyring:github-webhook"
#token = "keyring:github-token"
#bot_login = "my-bot"
#repositories = ["acme/app"]
#
#[sources.slack]
#connector = "slack"
#bot_token = "keyring:slack-bot"
#app_token = "keyring:slack-app"

# Who people are: operator, member or contact. A stranger's words are never instructions.
#[people.ada]
#kind = "operator"
#ids = ["github:1815", "slack:U0123456789"]
# Where an operator is told what waits for them: "source:room". They answer there, from an id of
# theirs of that very source.
#notify = "slack:D0123456789"

# Who may sign in beside this machine's owner: whom your OpenID provider knows, as what. An entry is
# an address, "@domain" or "sub:SUBJECT"; nobody comes in whom no list names. runners may let
# commands run on devices. Its redirect address is https://YOUR-HUB/sign-in/return.
#[auth]
#issuer = "https://id.example.org"
#client_id = "upright"
#client_secret = "keyring:oidc"
#admins = ["ada@example.org"]
#operators = ["@example.org"]
#viewers = []
#runners = ["ada@example.org"]
# Proxies whose X-Forwarded-For is believed, by their addresses.
#trusted_proxies = []
# How long a browser stays in, unused and at all, and a one-time link, in seconds; tokens in days.
#idle_s = 43200
#session_s = 1209600
#link_s = 600
#token_days = 365
# Sign-ins that may fail, per address; how far the provider's clock may be off, in seconds.
#tries_per_minute = 20
#clock_skew_s = 60

# Agents beside the router and the developer, and how much one may have at once. The home of each is
# a folder in agents/ of the state folder, which begins with a template: developer, mail-assistant,
# ops, qa, release, researcher, reviewer or router.
#[agents.reviewer]
#template = "reviewer"
#open_items = 50
#children = 8
#depth = 3

# Rules judge triggers, first match first: explicit, candidate or ignore. What isn't given matches
# anything: sources, kinds, scopes, actor_kinds, actors, addresses, facts, text, listed_bots.
# urgent = true: what it matches interrupts its worker.
#[[rules]]
#name = "red CI on main is work"
#verdict = "explicit"
#kinds = ["ci.failed"]
#scopes = ["acme/*"]
#facts = { branch = "main" }

# What comes on a thread that a worker follows: all goes to it without the router; people: what bots
# and CI say goes to the router as well; none: the router forwards everything.
#[routing]
#pass_through = "all"

[limits]
# Seconds, bytes and counts; the defaults are meant to be left alone.
"""

_RETENTION: Final = """
# How long each kind of thing is kept: in days from when it was settled; 0: for ever. All output
# together has a cap in bytes, too. What was pruned keeps its id, and says when; what unfinished
# work needs is kept, whatever its age.
[retention]
"""


_DEADLINES: Final = """
# How long each kind of wait may last, in seconds, before something else happens: a job is looked
# at; of the world and the system a person is asked; a person is reminded.
[deadlines]
"""

_LIVES: Final = """
# How long an effect may wait to be sent before it is too late, in seconds.
[lives]
"""


_BUDGETS: Final = """
# What may be used, of the hub's day, of each source, policy and agent a day, of each item and each
# turn: tokens, usd, steps (model calls), seconds, retries, repeats (calls made before). 0: none.
# At warn_percent you are told, at the end work stops at a safe point and waits for you, or for
# 00:00 UTC. `upright budget set` goes before these. Calls without a price count no dollars.
[budgets]
#warn_percent = 80
"""

_NAMED: Final = """
# Single ones by name.
#[budgets.sources.github]
#usd = 5.0
#[budgets.policies."red CI on main is work"]
#tokens = 2000000
#[budgets.agents.developer]
#steps = 1000
"""


def _budgets() -> str:
    section, text = BudgetsSection(), _BUDGETS
    for each in fields(section):
        caps = getattr(section, each.name)
        if isinstance(caps, CapSection):
            text += f"#[budgets.{each.name}]\n"
            text += "".join(f"#{key} = {getattr(caps, key)}\n" for key in UNITS)
    return text + _NAMED


def template() -> str:
    """Return the whole file."""
    sections: tuple[tuple[str, type[Section]], ...] = (
        (_HEAD, Limits),
        (_DEADLINES, DeadlinesSection),
        (_LIVES, LivesSection),
        (_RETENTION, RetentionSection),
    )
    return "".join(f"{head}{_keys(section)}" for head, section in sections) + _budgets()


def _keys(section: type[Section]) -> str:
    return "".join(f"#{each.name} = {each.default}\n" for each in fields(section))
