"""The report's only style sheet. The page's Content-Security-Policy names its hash: nothing else may style anything.

Colours are Okabe and Ito's set for all kinds of colour vision, muted a little, in two tempers for light and dark.
"""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #fff; --ink: #22262b; --soft: #656c76; --line: #e4e4df; --band: #f3ead2;
  --done: #2f9e7d; --failed: #bd4e0c; --missed: #9c4a82; --skipped: #b4bac2; --running: #3d8ec9; --took: #9fb4c4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #131518; --card: #1b1e22; --ink: #e4e7ea; --soft: #98a0aa; --line: #2d3137; --band: #3a3420;
    --done: #3db08c; --failed: #ea7a3c; --missed: #d486bb; --skipped: #5c646e; --running: #62b0e8; --took: #51677a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 2.5rem 1.5rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%;
}
main, body > header, body > footer { max-width: 72rem; margin: 0 auto; }
h1 { margin: 0; font-size: 1.55rem; font-weight: 600; letter-spacing: -0.01em; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1rem; font-weight: 600; }
h3 { margin: 0; font-size: 1.05rem; font-weight: 600; overflow-wrap: anywhere; }
p { margin: 0; overflow-wrap: anywhere; }
.soft, dt, footer, .label { color: var(--soft); }
.soft, footer { font-size: 0.87rem; }
.totals { display: flex; flex-wrap: wrap; gap: 0.5rem 2.25rem; margin: 1.5rem 0 0; }
.totals div { min-width: 4rem; }
.totals dt { font-size: 0.8rem; }
.totals dd { margin: 0; font-size: 1.5rem; line-height: 1.25; font-weight: 500; }
.totals .bad dd { color: var(--failed); }
dl { margin: 0; }
article, .incidents { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
article {
  display: grid; grid-template-columns: minmax(0, 21rem) minmax(0, 1fr); gap: 0.75rem 2.5rem;
  padding: 1.25rem 1.5rem 1rem; margin: 0 0 0.9rem; break-inside: avoid;
}
article header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0.15rem 0.6rem; }
article header p { flex-basis: 100%; }
.facts {
  display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0.1rem 1rem; margin-top: 0.6rem; font-size: 0.9rem;
}
.facts dd { margin: 0; }
.facts dd .soft { white-space: nowrap; }
.state { font-size: 0.8rem; font-weight: 600; white-space: nowrap; color: var(--soft); }
.state::before {
  content: ""; display: inline-block; width: 0.6em; height: 0.6em; margin-right: 0.4em; border-radius: 50%;
  background: var(--skipped);
}
.state.ok::before { background: var(--done); }
.state.running::before { background: var(--running); }
.state.failed { color: var(--failed); }
.state.failed::before { background: var(--failed); border-radius: 1px; }
.state.never { color: var(--missed); }
.state.never::before { background: none; border: 2px solid var(--missed); }
.bad-fact { color: var(--failed); }
.message { grid-column: 1 / -1; font-size: 0.87rem; color: var(--soft); }
.charts { min-width: 0; }
.charts figure { margin: 0 0 0.5rem; }
svg { display: block; overflow: hidden; }
svg text { font-size: 11px; fill: var(--soft); }
svg text.change { fill: var(--ink); }
.grid { stroke: var(--line); stroke-width: 1; }
.base { stroke: var(--line); stroke-width: 1; }
.median { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 3 3; opacity: 0.6; }
.band { fill: var(--band); }
.pause { fill: var(--line); }
.done { fill: var(--done); }
.failed { fill: var(--failed); }
.skipped { fill: var(--skipped); }
.running { fill: var(--running); }
.took { fill: var(--took); }
.missed { fill: var(--card); stroke: var(--missed); stroke-width: 2; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1.25rem; margin: 0 0 0.9rem; padding: 0; list-style: none; }
.legend li { display: flex; align-items: flex-end; gap: 0.45rem; }
.legend svg { margin-bottom: 3px; }
.incidents { margin: 0; padding: 0.25rem 1.5rem; list-style: none; }
.incidents li { padding: 0.7rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.incidents li:first-child { border-top: 0; }
.incidents strong.critical { color: var(--failed); }
.notes { margin: 0 0 0.9rem; padding: 0; list-style: none; }
footer { margin-top: 2.5rem; }
@media (max-width: 46rem) {
  body { padding: 1.25rem 0.9rem 3rem; }
  article { grid-template-columns: minmax(0, 1fr); padding: 1rem; }
  .incidents { padding: 0.25rem 1rem; }
  .totals { gap: 0.5rem 1.5rem; }
  .crowded { display: none; }
}
@media print {
  :root { --page: #fff; --line: #ccc; }
  body { padding: 0; font-size: 11px; }
  article, .incidents { border-radius: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


def policy() -> str:
    """The page's Content-Security-Policy: nothing at all, but this style sheet."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode("ascii")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
