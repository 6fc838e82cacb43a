// The report's style sheet.
#pragma once

namespace leeway {

inline constexpr char kReportStyle[] = R"css(
:root{color-scheme:light dark;--ink:#1f2933;--dim:#697586;--line:#e4e7eb;--page:#f5f6f8;--card:#fff;
--data:#b197fc;--forward:#60a5fa;--backward:#2563eb;--other:#94a3b8;--wait:#f59f00;--good:#087f5b;--warn:#b45309;--bad:#c92a2a}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ee;--dim:#98a2b3;--line:#2d3540;--page:#0d1117;--card:#15191f;
--data:#9775fa;--forward:#93c5fd;--backward:#3b82f6;--other:#64748b;--wait:#fcc419;--good:#38d9a9;--warn:#ffa94d;--bad:#ff8787}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1000px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;display:flex;gap:12px;align-items:center;flex-wrap:wrap}
h2{font-size:13px;font-weight:600;margin:0 0 12px;color:var(--dim);text-transform:uppercase;letter-spacing:.06em}
.sub{color:var(--dim);margin:0 0 24px}
.pill{font-size:13px;font-weight:600;padding:2px 10px;border-radius:99px;border:1.5px solid currentColor}
.finished{color:var(--good)}.stopped{color:var(--warn)}.failed{color:var(--bad)}
.why{border-left:4px solid var(--bad);padding:8px 14px;margin:0 0 20px;background:var(--card);white-space:pre-wrap;overflow-x:auto}
.why.warn{border-left-color:var(--warn)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(122px,1fr));gap:12px;margin-bottom:20px}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:14px 16px}
.tile b{display:block;font-size:22px;white-space:nowrap;line-height:1.25;font-variant-numeric:tabular-nums}
.tile span{color:var(--dim);font-size:13px}
.card{padding:18px 20px;margin-bottom:20px;overflow-x:auto}
.card svg{display:block;width:100%;height:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{font-weight:600;color:var(--dim);font-size:13px;text-align:right;white-space:nowrap}
td{text-align:right}th,td{padding:6px 10px;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}
th:first-child,td:first-child{padding-left:0}
.left{text-align:left}.when{color:var(--dim)}.wide{width:100%;overflow-wrap:anywhere}.left.when,.left.when+td{white-space:nowrap;vertical-align:top}
.bar{display:flex;height:12px;min-width:180px;border-radius:6px;overflow:hidden;background:var(--line)}
.bar i{display:block}.data{background:var(--data)}.forward{background:var(--forward)}
.backward{background:var(--backward)}.other{background:var(--other)}.wait{background:var(--wait)}
.key{display:inline-block;width:10px;height:10px;border-radius:3px;margin:0 5px 0 14px}
.note{color:var(--dim);font-size:13px;margin:10px 0 0}
.scroll{max-height:320px;overflow-y:auto}
pre{margin:0;font:13px/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
code{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;overflow-wrap:anywhere}
footer{color:var(--dim);font-size:13px}
)css";

}  // namespace leeway
