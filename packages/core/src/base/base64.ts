/** Base64 encoding and decoding with platform functions, in chunks that avoid long argument lists. */

/** Bytes per chunk: a multiple of three, so that encoded chunks can be joined. */
const chunkBytes = 0x6000;

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  const chunks: string[] = [];
  for (let start = 0; start < bytes.length; start += chunkBytes)
    chunks.push(btoa(String.fromCharCode(...bytes.subarray(start, start + chunkBytes))));
  return chunks.join("");
}

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
}
