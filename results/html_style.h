// SPDX-License-Identifier: GPL-2.0-or-later
// The page's style: system fonts, one column on a phone, colours for light and dark that also
// people with a colour vision deficiency tell apart (blue tcp, orange rdma; writes paler).
#pragma once

namespace nfsrdma::results {

inline constexpr const char* kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f6f7f9; --text: #1b2026; --quiet: #626b77; --grid: #dde1e6;
  --c0: #1f6fc2; --c0w: #85b4e3; --c1: #c9560c; --c1w: #eda674; --c2: #23804c; --c2w: #86c4a0;
  --c3: #7d4bb0; --c3w: #bda0da; --published: #a9b0b9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1d2127; --text: #e7eaee; --quiet: #98a2af; --grid: #333a43;
    --c0: #62a8ee; --c0w: #33618f; --c1: #f08a48; --c1w: #8f5329; --c2: #58bb83; --c2w: #316b4a;
    --c3: #b48be0; --c3w: #66498a; --published: #5d6670;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.25rem 1rem 3rem; max-width: 64rem; background: var(--page);
  color: var(--text); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.25rem 0 0; }
h3 { font-size: .95rem; margin: 0 0 .5rem; }
p { margin: .25rem 0 .75rem; }
.quiet { color: var(--quiet); }
.lead { font-size: 1.05rem; }
.charts {
  display: grid; gap: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); margin-top: .9rem;
}
figure { margin: 0; padding: 1rem; background: var(--card); border-radius: .6rem; min-width: 0; }
figcaption { margin-top: .4rem; font-size: .85rem; color: var(--quiet); }
svg { display: block; width: 100%; height: auto; max-width: 34rem; }
svg text { font-size: 13px; fill: var(--text); font-variant-numeric: tabular-nums; }
svg text.small { font-size: 11.5px; }
svg text.quiet { fill: var(--quiet); }
svg text.heading { font-weight: 600; }
svg .figure { font-weight: 600; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .stroke { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .stroke.dash { stroke-dasharray: 6 4; }
.key { display: flex; flex-wrap: wrap; gap: .15rem 1rem; font-size: .85rem; margin: .5rem 0 0; }
.key span { white-space: nowrap; }
.key svg { display: inline-block; width: 1.6rem; height: .7rem; margin-right: .4rem; }
.c0 { fill: var(--c0); stroke: var(--c0); } .c0w { fill: var(--c0w); stroke: var(--c0w); }
.c1 { fill: var(--c1); stroke: var(--c1); } .c1w { fill: var(--c1w); stroke: var(--c1w); }
.c2 { fill: var(--c2); stroke: var(--c2); } .c2w { fill: var(--c2w); stroke: var(--c2w); }
.c3 { fill: var(--c3); stroke: var(--c3); } .c3w { fill: var(--c3w); stroke: var(--c3w); }
.published { fill: var(--published); stroke: var(--published); }
svg .fill { stroke: none; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .65rem; text-align: right; white-space: nowrap; }
th { font-weight: 600; border-bottom: 2px solid var(--grid); }
td { border-bottom: 1px solid var(--grid); }
th.left, td.left { text-align: left; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--quiet); }
)css";

}  // namespace nfsrdma::results
