/** Bytes as base64 and back, in plain platform functions: no large list of arguments, no copy beside the text. */

/** So many bytes become text at once: a multiple of three, so that pieces can be joined. */
const atOnce = 0x6000;

/** Bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; start += atOnce)
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(start, start + atOnce))));
  return pieces.join("");
}

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
