/** Resources of an MCP server: resources of the application, and artifacts of tool calls. */
import { type ReadResourceResult, type Resource, ResourceNotFoundError } from "@modelcontextprotocol/server";
import type { Store } from "@statewright/core";
import { invalidOption, toBase64 } from "@statewright/core/adapter";
import type { ArtifactRow } from "@statewright/core/store";
import { createThreadId, isThreadName, type McpCaller } from "./caller.ts";
import { artifactScheme } from "./content.ts";
import type { McpLimits } from "./limits.ts";

/** Readable resource of the application. */
export interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType?: string;
  /** Returns text or bytes. */
  readonly read: (caller: McpCaller) => string | Uint8Array | Promise<string | Uint8Array>;
}

/** Lists and reads resources. */
export interface Resources {
  readonly list: () => readonly Resource[];
  /** Throws `ResourceNotFoundError` for an unknown URI and for an artifact of another client. */
  readonly read: (uri: string, caller: McpCaller) => Promise<ReadResourceResult>;
}

/**
 * Creates the resources of a server. Throws `invalid_option` for a resource without a name, an invalid URI or a
 * duplicate URI.
 */
export function createResources(resources: readonly McpResource[], store: Store, limits: McpLimits): Resources {
  const byUri = new Map<string, McpResource>();
  for (const resource of resources) {
    if (
      !URL.canParse(resource.uri) ||
      resource.name === "" ||
      byUri.has(resource.uri) ||
      resource.uri.startsWith(artifactScheme)
    )
      throw invalidOption({
        where: "serveMcp",
        option: "resources",
        expected: "resources with a name and a unique absolute URI",
        found: `a resource with the URI ${JSON.stringify(resource.uri)} and the name ${JSON.stringify(resource.name)}`,
        fix: "Use a name and a unique absolute URI for each resource",
      });
    byUri.set(resource.uri, resource);
  }

  async function readArtifact(uri: string, caller: McpCaller): Promise<ReadResourceResult> {
    const [tool = "", thread, handle = "", ...more] = uri.slice(artifactScheme.length).split("/");
    if (!/^[a-z0-9_]{1,64}$/.test(tool) || !isThreadName(thread) || !/^[0-9a-f]{16}$/.test(handle) || more.length > 0)
      throw new ResourceNotFoundError(uri);
    const threadId = createThreadId(caller, tool, thread);
    const [row] = await store.artifacts.list(threadId, { key: handle });
    // An artifact stored without redaction is for the application only.
    if (row === undefined || row.redaction === "skipped") throw new ResourceNotFoundError(uri);
    const body = await store.artifacts.read(threadId, row.key, { offset: 0, limit: limits.resourceBytes + 1 });
    if (body === undefined) throw new ResourceNotFoundError(uri);
    return toContents(uri, body, row);
  }

  function toContents(
    uri: string,
    body: string | Uint8Array,
    metadata: Partial<Pick<ArtifactRow, "mimeType" | "text">>,
  ): ReadResourceResult {
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    if (bytes > limits.resourceBytes) throw new Error(`The resource exceeds ${limits.resourceBytes} bytes.`);
    const { mimeType } = metadata;
    const common = { uri, ...(mimeType === undefined ? {} : { mimeType }) };
    if (typeof body === "string") return { contents: [{ ...common, text: body }] };
    if (metadata.text === true) return { contents: [{ ...common, text: new TextDecoder().decode(body) }] };
    return { contents: [{ ...common, blob: toBase64(body) }] };
  }

  return {
    list: () => resources.map(({ read: _read, ...about }) => about),
    read: async (uri, caller) => {
      if (uri.startsWith(artifactScheme)) return readArtifact(uri, caller);
      const resource = byUri.get(uri);
      if (resource === undefined) throw new ResourceNotFoundError(uri);
      return toContents(
        uri,
        await resource.read(caller),
        resource.mimeType === undefined ? {} : { mimeType: resource.mimeType },
      );
    },
  };
}
