/** Hash of the deltas that remain of a pruned range: the anchor of the hash chain above it. */
import { hash } from "node:crypto";
import type { PrunedDelta } from "@statewright/core/store";
import type { ThreadCipher } from "./cipher.ts";
import { computeDeltaSum } from "./rows.ts";

/**
 * Hashes the remaining deltas, independent of their order; encrypted texts are excluded because they are
 * authenticated.
 */
export function hashRemainingDeltas(
  cipher: Pick<ThreadCipher, "hash"> | undefined,
  namespace: string,
  remaining: readonly PrunedDelta[],
): string {
  const rows = remaining.map((row) =>
    JSON.stringify([
      row.channel,
      row.checkpoint,
      row.kind,
      row.base,
      row.count,
      cipher === undefined ? computeDeltaSum(namespace, row.checkpoint, row) : undefined,
    ]),
  );
  const text = rows.toSorted().join("\n");
  return cipher === undefined ? hash("sha256", text, "base64") : cipher.hash(text);
}
