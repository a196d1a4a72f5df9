/** Artifacts in memory: of the memory store, and as a separate artifact store. */
import {
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  matchesArtifactFilter,
  sliceRange,
} from "../../tool/artifacts/artifact.ts";
import { checkFilter, checkRange } from "../rules.ts";

/** Artifacts of one thread. */
export interface ThreadArtifacts {
  rows: ArtifactRow[];
  readonly bodies: Map<string, Uint8Array>;
}

/** Creates an artifact store in memory, for a run without a store or with a store of another kind. */
export function memoryArtifacts(): ArtifactStore {
  const threads = new Map<string, ThreadArtifacts>();
  return {
    put: async (thread, artifact) => {
      const artifacts = threads.get(thread) ?? createThreadArtifacts();
      threads.set(thread, artifacts);
      putArtifact(artifacts, artifact);
    },
    ...createArtifactAccess((thread) => threads.get(thread)),
  };
}

/** Creates the read and delete operations for the artifacts returned by `find`. */
export function createArtifactAccess(
  find: (thread: string) => ThreadArtifacts | undefined,
): Pick<ArtifactStore, "list" | "read" | "delete"> {
  return {
    list: async (thread, filter = {}) => {
      checkFilter("artifacts", filter, ["run", "key"]);
      return (find(thread)?.rows ?? []).filter((row) => matchesArtifactFilter(row, filter)).slice(0, filter.limit);
    },
    read: async (thread, key, range) => {
      if (range !== undefined) checkRange(range);
      const body = find(thread)?.bodies.get(key);
      return body === undefined ? undefined : sliceRange(body, range ?? { offset: 0, limit: body.length });
    },
    delete: async (thread, key) => {
      const artifacts = find(thread);
      if (artifacts?.bodies.delete(key) !== true) return false;
      artifacts.rows = artifacts.rows.filter((row) => row.key !== key);
      return true;
    },
  };
}

/** Stores an artifact; identical bodies are stored once. */
export function putArtifact(artifacts: ThreadArtifacts, { row, body }: ArtifactWrite): void {
  artifacts.rows.push(row);
  if (!artifacts.bodies.has(row.key)) artifacts.bodies.set(row.key, body);
}

export function createThreadArtifacts(): ThreadArtifacts {
  return { rows: [], bodies: new Map() };
}
