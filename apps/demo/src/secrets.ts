/** Detection of secrets by file name and by text. */

const secretFilePattern = /(^|\/)(\.env(\..+)?|\.netrc|id_(rsa|dsa|ecdsa|ed25519)|.+\.(pem|p12|pfx|keystore))$/i;
const templateFilePattern = /\.(example|sample|template|dist)$/i;

/** Returns true if files of this name usually contain secrets. */
export function isSecretFile(path: string): boolean {
  return secretFilePattern.test(path) && !templateFilePattern.test(path);
}

const secretPatterns: readonly RegExp[] = [
  /\bsk-[A-Za-z0-9_-]{20,}/g,
  /\bgh[pousr]_[A-Za-z0-9]{36,}/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\bxox[abprs]-[A-Za-z0-9-]{20,}/g,
  /\bAIza[0-9A-Za-z_-]{35}/g,
  /_(?:authToken|password)=(?!\$\{)\S{8,}/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g,
];

/** Replaces secrets in a text by `[redacted]`. Returns the text and the number of replaced secrets. */
export function redactSecrets(text: string): { readonly text: string; readonly count: number } {
  let count = 0;
  const clean = secretPatterns.reduce(
    (current, shape) =>
      current.replace(shape, () => {
        count += 1;
        return "[redacted]";
      }),
    text,
  );
  return { text: clean, count };
}
