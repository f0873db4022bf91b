/** The kit's part of the command line's help: it names the families that the kit asks. Shipped apart, as each command loads it. */
export const conformance = {
  line: 'test any gateway from outside',
  usage: ['--base-url URL [options]'],
  text: `Runs numbered black-box checks against any gateway and prints what was seen.

  --base-url URL         the gateway, with its mount prefix if it has one
  --key-openai KEY       a key that may use the OpenAI endpoints
  --key-anthropic KEY    a key that may use /v1/messages
  --key-gemini KEY       a key that may use generateContent
  --key-spent KEY        a key of the OpenAI endpoints whose balance is spent
  --model-openai NAME    a model of each family (default: model-1)
  --model-anthropic NAME
  --model-gemini NAME
  --upstream-port PORT   play the provider on this port of 127.0.0.1: point the gateway's upstreams there
  --metrics-url URL      Prometheus text of the gateway, for the checks of token counters
  --json FILE            write the results
  --junit FILE           write them as JUnit XML
  --profile NAME         transparent (default): what any gateway has that passes requests on; translating: without the checks of
                         bytes that stay as they are; house: with the conventions of this project
  --check N              run only this check; may be given again
  --timeout-ms N         limit of one check (default: 10000)

Exit code: 0 nothing failed, 1 a check failed, 2 wrong usage.`,
}
