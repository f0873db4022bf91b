import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { body } from './body.js'
import { style } from './style.js'

export interface Page {
  readonly html: string
  readonly headers: Readonly<Record<string, string>>
}

const require = createRequire(import.meta.url)

function chartFile (name: string): string {
  return readFileSync(require.resolve(`uplot/dist/${name}`), 'utf8')
}

/** In this order: each uses those before it. */
const clientFiles = ['numbers', 'tiles', 'charts', 'tables', 'life']

/** The files of the script as one: a page that loads nothing cannot import. */
function clientScript (): string {
  const files = clientFiles.map((name) => readFileSync(new URL(`client/${name}.js`, import.meta.url), 'utf8'))
  return files.join('\n').replace(/^import\b.*$/gm, '').replace(/\bexport (?=const|function)/g, '')
}

function hashOf (text: string): string {
  return `'sha256-${hash('sha256', text, 'base64')}'`
}

/**
 * One page that contains everything. Its policy names the hashes of these scripts and styles and allows nothing else: it requests nothing
 * but its own data.
 */
export function createPage (): Page {
  const chart = chartFile('uPlot.iife.min.js')
  const client = clientScript()
  const styles = [chartFile('uPlot.min.css'), style]
  const policy = [
    'default-src \'none\'',
    'connect-src \'self\'',
    `script-src ${hashOf(chart)} ${hashOf(client)}`,
    `style-src ${styles.map(hashOf).join(' ')}`,
    'base-uri \'none\'',
    'form-action \'none\'',
    'frame-ancestors \'none\'',
  ]
  const html = [
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>LLM gateway</title>',
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    ...styles.map((text) => `<style>${text}</style>`),
    `</head><body>${body}`,
    `<script>${chart}</script>`,
    `<script type="module">${client}</script>`,
    '</body></html>',
  ]
  return {
    html: html.join('\n'),
    headers: {
      'content-security-policy': policy.join('; '),
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  }
}
