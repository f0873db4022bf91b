const dark = `--ground: #10141a; --card: #171d26; --line: #28303c; --text: #e6eaf0; --dim: #8f9bab; --edge: #0009;
  --blue: #56a8e8; --orange: #f0a23c; --green: #2fc297; --red: #f07167; --purple: #c595dd; --sky: #8fd0f5;`

/** Colours are the Okabe-Ito set, which colour-blind people can distinguish, a shade lighter on dark ground. */
export const style = `
:root {
  --ground: #f6f7f9; --card: #fff; --line: #e3e6eb; --text: #1b2330; --dim: #66707f; --edge: #0b152526;
  --blue: #0072b2; --orange: #d97706; --green: #00805d; --red: #c8372d; --purple: #8e5ba6; --sky: #3a9bd1;
}
@media (prefers-color-scheme: dark) {
  :root:not([data-theme=light]) {
    ${dark}
  }
}
:root[data-theme=dark] {
  ${dark}
}
* { box-sizing: border-box }
body {
  margin: 0; padding: 1rem clamp(.75rem, 2.5vw, 2rem) 3rem; background: var(--ground); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif;
}
main, header { max-width: 1500px; margin: 0 auto }
header { display: flex; align-items: center; gap: .75rem; padding: .25rem 0 1rem }
h1 { font-size: 1.15rem; margin: 0; letter-spacing: -.01em }
h2 { font-size: .8rem; font-weight: 600; margin: 0 0 .6rem; color: var(--dim); letter-spacing: .02em }
#about { color: var(--dim); font-size: .85rem; flex: 1; white-space: nowrap; overflow: hidden; text-overflow: ellipsis }
#state { width: .6rem; height: .6rem; border-radius: 50%; background: var(--dim); flex: none }
#state.live { background: var(--green) }
#state.lost { background: var(--red) }
button, select {
  font: inherit; white-space: nowrap; font-size: .85rem; color: var(--dim); background: none; border: 1px solid var(--line);
  border-radius: 6px; padding: .2rem .7rem; cursor: pointer;
}
button:hover, button:focus-visible, select:hover, select:focus-visible { color: var(--text); border-color: var(--dim) }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: .9rem 1rem; min-width: 0 }
.tiles { display: grid; grid-template-columns: repeat(8, 1fr); gap: .75rem; margin-bottom: .75rem }
.tile b {
  display: block; font-size: 1.55rem; font-weight: 600; letter-spacing: -.02em; font-variant-numeric: tabular-nums; line-height: 1.25;
}
.tile b small { font-size: .8rem; font-weight: 400; color: var(--dim); letter-spacing: 0; margin-left: .2rem }
.tile.bad b { color: var(--red) }
.tile { display: flex; flex-direction: column; justify-content: space-between }
.tile h2 { margin: 0 }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: .75rem; margin-bottom: .75rem }
.wide { grid-column: 1 / -1 }
.scroll {
  overflow: auto; margin: 0 -1rem -.4rem; padding: 0 1rem .4rem; max-height: 32rem;
  background:
    linear-gradient(to right, var(--card) 50%, transparent) left / 2.5rem 100% local,
    linear-gradient(to left, var(--card) 50%, transparent) right / 2.5rem 100% local,
    linear-gradient(to right, var(--edge), transparent) left / .8rem 100% scroll,
    linear-gradient(to left, var(--edge), transparent) right / .8rem 100% scroll;
  background-repeat: no-repeat;
}
.scroll th { position: sticky; top: 0; z-index: 1; background: var(--card) }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .9rem }
th {
  text-align: right; font-weight: 500; color: var(--dim); font-size: .78rem; padding: .15rem .6rem .35rem;
  border-bottom: 1px solid var(--line); white-space: nowrap;
}
td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
tr:last-child td { border-bottom: 0 }
th.name, td.name { text-align: left; padding-left: 0 }
td.name { white-space: normal; overflow-wrap: anywhere; min-width: 5.5rem; max-width: 26rem }
.wide td.name:nth-child(2) { min-width: 10rem }
td .low { color: var(--red); font-weight: 600 }
td:last-child, th:last-child { padding-right: 0 }
td.zero { color: var(--dim); opacity: .55 }
.none { color: var(--dim); font-size: .9rem; margin: .2rem 0 }
meter { width: 4.5rem; height: .8rem; vertical-align: middle }
.charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)) }
.columns { columns: 3 23rem; column-gap: .75rem }
.columns section { break-inside: avoid; margin-bottom: .75rem }
.uplot, .u-legend { font-family: inherit }
.u-legend { display: flex; flex-wrap: wrap; gap: 0 1rem; margin: .35rem 0 0; text-align: left; font-size: .8rem; width: auto }
.u-legend tr:first-child { display: none }
.u-legend th, .u-legend td { border: 0; padding: .1rem 0; font-size: .8rem; text-align: left; color: var(--dim); font-weight: 400 }
.u-legend td { color: var(--text); padding-left: .35rem; min-width: 3rem }
.u-legend .u-marker { border-radius: 50%; width: .6rem; height: .6rem; margin-right: .35rem }
.u-legend .u-label { vertical-align: baseline }
.u-legend .u-off > * { opacity: .35 }
body.lost main { opacity: .45 }
body.lost #about { color: var(--red) }
.u-select { background: color-mix(in srgb, var(--blue) 15%, transparent) }
@media (max-width: 75rem) { .tiles { grid-template-columns: repeat(4, 1fr) } }
@media (max-width: 32rem) {
  body { padding-top: .5rem }
  header { flex-wrap: wrap; row-gap: .1rem }
  #about { order: 1; flex-basis: 100% }
  button { margin-left: auto }
  .tiles { grid-template-columns: 1fr 1fr }
  .tile { padding: .6rem .8rem }
  .tile b { font-size: 1.3rem }
  table { font-size: .82rem }
  th { font-size: .72rem }
  th, td { padding-left: .3rem; padding-right: .3rem }
  .wide td.name:nth-child(2) { min-width: 6rem }
  meter { width: 3rem }
}
`
