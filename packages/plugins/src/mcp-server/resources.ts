/** Resources: what the application offers to be read, and what calls have kept of large results. */
import { type ReadResourceResult, type Resource, ResourceNotFoundError } from "@modelcontextprotocol/server";
import { type ArtifactRow, StatewrightError, type Store, toBase64 } from "@statewright/core";
import { isThreadName, type McpCaller, storedThread } from "./caller.ts";
import { artifactScheme } from "./content.ts";
import type { McpLimits } from "./limits.ts";

/** Something to be read. */
export interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Text, or bytes. */
  readonly read: (caller: McpCaller) => string | Uint8Array | Promise<string | Uint8Array>;
}

/** Reads what there is to read. */
export interface Resources {
  readonly list: () => readonly Resource[];
  /** Throws what the client reads as "not found", also for what another client's calls have kept. */
  readonly read: (uri: string, caller: McpCaller) => Promise<ReadResourceResult>;
}

/** Resources of a server. Throws `invalid_option` for one without an address or a name, and for two with one address. */
export function resourcesOf(given: readonly McpResource[], store: Store, limits: McpLimits): Resources {
  const byUri = new Map<string, McpResource>();
  for (const resource of given) {
    if (
      !URL.canParse(resource.uri) ||
      resource.name === "" ||
      byUri.has(resource.uri) ||
      resource.uri.startsWith(artifactScheme)
    )
      throw new StatewrightError("invalid_option", {
        what: `the resource ${JSON.stringify(resource.uri)} of serveMcp has no name, or an address that is none or is taken`,
        next: "Give each an absolute address of its own and a name",
      });
    byUri.set(resource.uri, resource);
  }

  async function artifact(uri: string, caller: McpCaller): Promise<ReadResourceResult> {
    const [tool = "", thread, handle = "", ...more] = uri.slice(artifactScheme.length).split("/");
    if (!/^[a-z0-9_]{1,64}$/.test(tool) || !isThreadName(thread) || !/^[0-9a-f]{16}$/.test(handle) || more.length > 0)
      throw new ResourceNotFoundError(uri);
    const stored = storedThread(caller, tool, thread);
    const [row] = await store.artifacts.list(stored, { key: handle });
    // What a tool keeps whole in spite of its redaction is for the application alone.
    if (row === undefined || row.redaction === "skipped") throw new ResourceNotFoundError(uri);
    const body = await store.artifacts.read(stored, row.key, { offset: 0, limit: limits.resourceBytes + 1 });
    if (body === undefined) throw new ResourceNotFoundError(uri);
    return contents(uri, body, row);
  }

  function contents(
    uri: string,
    body: string | Uint8Array,
    about: Partial<Pick<ArtifactRow, "mimeType" | "text">>,
  ): ReadResourceResult {
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    if (bytes > limits.resourceBytes) throw new Error(`The resource is larger than ${limits.resourceBytes} bytes.`);
    const { mimeType } = about;
    const place = { uri, ...(mimeType === undefined ? {} : { mimeType }) };
    if (typeof body === "string") return { contents: [{ ...place, text: body }] };
    if (about.text === true) return { contents: [{ ...place, text: new TextDecoder().decode(body) }] };
    return { contents: [{ ...place, blob: toBase64(body) }] };
  }

  return {
    list: () => given.map(({ read: _read, ...about }) => about),
    read: async (uri, caller) => {
      if (uri.startsWith(artifactScheme)) return artifact(uri, caller);
      const resource = byUri.get(uri);
      if (resource === undefined) throw new ResourceNotFoundError(uri);
      return contents(
        uri,
        await resource.read(caller),
        resource.mimeType === undefined ? {} : { mimeType: resource.mimeType },
      );
    },
  };
}
