/** Graph versions that a thread names. */
import type { GraphVersion, ThreadExport } from "./thread-export.ts";

/** Lists the graph versions that the rows of a thread name, without duplicates: of its checkpoints and of its writer. */
export function listGraphVersions({
  namespaces,
  writtenBy,
}: Pick<ThreadExport, "namespaces" | "writtenBy">): readonly GraphVersion[] {
  const versions = new Map<string, GraphVersion>();
  if (writtenBy !== undefined) versions.set(toVersionKey(writtenBy), writtenBy);
  for (const { checkpoints } of namespaces)
    for (const { writtenBy: version } of checkpoints) versions.set(toVersionKey(version), version);
  return [...versions.values()];
}

/** Returns a text that is equal for equal graph versions only. */
export function toVersionKey({ graph, version, shape }: GraphVersion): string {
  return JSON.stringify([graph, version, shape]);
}
