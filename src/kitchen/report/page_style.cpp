#include "kitchen/report/html_parts.h"

namespace kitchen::report {

std::string page_style() {
  return R"css(
:root { color-scheme: light dark; --paper: #ffffff; --panel: #f5f6f8; --ink: #1a1a1a;
  --soft: #4d4d4d;  --line: #d3d6da; --grid: #e2e4e7; --accent: #005f94; --marked: #fff0bf;
  --c0: #0072b2; --c1: #b84500; --c2: #00785a; --c3: #882255; --c4: #7a5f00; --c5: #505050; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --panel: #1d2226; --ink: #ececec; --soft: #b7bcc1;
    --line: #3b4248; --grid: #2b3137;    --accent: #6cbdf0; --marked: #4b3f12;
    --c0: #5cb6ea; --c1: #f39a5b; --c2: #45cba3; --c3: #ea9bc2; --c4: #e2c74f; --c5: #c4c8cc; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 58rem; background: var(--paper);
  color: var(--ink);  font: 1rem/1.55 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .4rem; }
p { max-width: 46rem; margin: .5rem 0; }
.lead { font-size: 1.08rem; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
.skip { position: absolute; left: -999rem; background: var(--paper); padding: .5rem 1rem; }
.skip:focus { left: .5rem; top: .5rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; list-style: none;
  margin: 1rem 0 0; padding: 0; }
nav a { display: inline-block; padding: .15rem 0; }
figure { margin: 1.25rem 0 1rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { max-width: 46rem; margin-top: .4rem; color: var(--soft); font-size: .94rem; }
.narrow { display: none; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .92rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .35rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2.5rem); }
figcaption strong { color: var(--ink); }
th, td { text-align: left; vertical-align: top; padding: .32rem .8rem .32rem 0;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
tbody th { font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
td.marked { background: var(--marked); padding-left: .4rem; font-weight: 600; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--accent); padding: .2rem 0; }
pre { background: var(--panel); border-left: 4px solid var(--line); padding: .75rem 1rem;
  margin: .5rem 0; max-height: 26rem; overflow: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .9rem; }
dl { max-width: 46rem; }
dt { font-weight: 600; margin-top: .7rem; }
dd { margin: .1rem 0 0; color: var(--soft); }
.notes { border-left: 4px solid var(--c1); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
code { font-size: .92em; overflow-wrap: anywhere; }
svg .k-paper { fill: var(--paper); }
svg .k-ink { fill: var(--ink); }
svg .k-soft { fill: var(--soft); }
svg .k-grid { stroke: var(--grid); }
svg .k-axis { stroke: var(--soft); }
svg .k-marker { stroke: var(--paper); }
svg .k-background { stroke-opacity: .38; }
svg .k-c0 { color: var(--c0); }
svg .k-c1 { color: var(--c1); }
svg .k-c2 { color: var(--c2); }
svg .k-c3 { color: var(--c3); }
svg .k-c4 { color: var(--c4); }
svg .k-c5 { color: var(--c5); }
@media (max-width: 40rem) {
  body { padding: 1rem .9rem 3rem; }
  h1 { font-size: 1.4rem; }
  .wide { display: none; }
  .narrow { display: block; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .skip, summary, details { display: none; }
  h2, h3 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  .wide { display: block; }
  .narrow { display: none; }
  .scroll { overflow: visible; }
  pre { max-height: none; } }
)css";
}

}  // namespace kitchen::report
