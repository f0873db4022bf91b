/**
 * Upper bounds of the histograms, ascending, in the unit of their metric.
 *
 * `operation` follows OpenTelemetry's GenAI conventions (0.01 s, doubled up to 81.92 s) plus three doublings, because long reasoning and
 * large images take minutes. `token` follows them for time per output token, with one finer and one coarser bound. The others cover what
 * their work really takes: microseconds for a lookup in memory, up to a second for a store in trouble.
 */
export const buckets = {
  operation: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36],
  token: [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5],
  overhead: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  lookup: [0.00001, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1],
} as const
