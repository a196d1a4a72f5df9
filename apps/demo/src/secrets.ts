/** What looks like a secret: in the name of a file, or in its text. */

const secretFiles = /(^|\/)(\.env(\..+)?|\.npmrc|\.netrc|id_(rsa|dsa|ecdsa|ed25519)|.+\.(pem|p12|pfx|keystore))$/i;
const harmless = /\.(example|sample|template|dist)$/i;

/** Tell whether a file is one that people keep secrets in. */
export function isSecretFile(path: string): boolean {
  return secretFiles.test(path) && !harmless.test(path);
}

const shapes: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{20,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{36,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\bxox[abprs]-[A-Za-z0-9-]{20,}/g,
  /\bAIza[0-9A-Za-z_-]{35}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g,
];

/** The text without what looks like a secret, and how many were taken out. */
export function redacted(text: string): { readonly text: string; readonly count: number } {
  let count = 0;
  const clean = shapes.reduce(
    (current, shape) =>
      current.replace(shape, () => {
        count += 1;
        return "[redacted]";
      }),
    text,
  );
  return { text: clean, count };
}
