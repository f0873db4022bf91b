/** A certificate for a server of a test that speaks TLS. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Test } from 'tap'

/** Why a test with a certificate is skipped; false where it can run. */
export const withoutTls = spawnSync('openssl', ['version']).error !== undefined && 'openssl is not installed'

export function certificate (t: Test): { key: Buffer, cert: Buffer } {
  const folder = t.testdir({})
  const [key, cert] = [`${folder}/key.pem`, `${folder}/cert.pem`]
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-out', cert, '-days', '1',
    '-subj', '/CN=localhost',
  ], { stdio: 'ignore' })
  return { key: readFileSync(key), cert: readFileSync(cert) }
}
