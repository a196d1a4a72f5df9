/** Removes the random part of idempotency keys from a text, to compare runs of different files. */
export function removeKeySalt(text: string): string {
  return text.replaceAll(/(?<=[\w.:-]\/)[0-9a-z]{12}\//g, "");
}

/** Lists the different random parts of idempotency keys in a text: one per thread. */
export function listKeySalts(text: string): readonly string[] {
  return [...new Set([...text.matchAll(/(?<=[\w.:-]\/)[0-9a-z]{12}(?=\/)/g)].map(([salt]) => salt))];
}
