/** Detects the type of images that models can read, by their first bytes. */

/** Returns the MIME type of a supported image; undefined for any other file. */
export function detectImageType(head: Uint8Array): string | undefined {
  const signature = Buffer.from(head.subarray(0, 16)).toString("latin1");
  if (signature.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (signature.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (signature.startsWith("GIF87a") || signature.startsWith("GIF89a")) return "image/gif";
  if (signature.startsWith("RIFF") && signature.slice(8, 12) === "WEBP") return "image/webp";
  return undefined;
}
