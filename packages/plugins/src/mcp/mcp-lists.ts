/** Resources and prompts of a server, as plain data. */
import { createHash } from "node:crypto";
import type { Client } from "@modelcontextprotocol/client";
import { type Message, StatewrightError } from "@statewright/core";
import type { Refusal } from "./http-refusal.ts";
import { contentOfBlocks } from "./mcp-result.ts";
import { allPages, unlimitedMs } from "./mcp-session.ts";

/** A resource that can be read. */
export interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

/** A family of resources: an address with places to fill in, by RFC 6570. */
export interface McpResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** One part of a resource: its text, or its bytes. */
export type McpResourceContents = { readonly uri: string; readonly mimeType?: string } & (
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
);

/** What a server has to read. */
export interface McpResources {
  list(options?: McpRequestOptions): Promise<readonly McpResource[]>;
  templates(options?: McpRequestOptions): Promise<readonly McpResourceTemplate[]>;
  /** Throws `mcp_failed` for one that there is not. */
  read(uri: string, options?: McpRequestOptions): Promise<readonly McpResourceContents[]>;
}

/** A prompt that a server offers. */
export interface McpPrompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: readonly { readonly name: string; readonly description?: string; readonly required: boolean }[];
}

/** The prompts of a server. */
export interface McpPrompts {
  list(options?: McpRequestOptions): Promise<readonly McpPrompt[]>;
  /** Its messages, for the input of an agent. Throws `mcp_failed` for one that there is not. */
  get(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: McpRequestOptions,
  ): Promise<{ readonly description?: string; readonly messages: readonly Message[] }>;
}

/** What a request may be given. */
export interface McpRequestOptions {
  readonly signal?: AbortSignal;
}

/** Does something with the client of the connection, within the time that requests have. */
export type Ask = <Value>(
  what: string,
  signal: AbortSignal | undefined,
  work: (client: Client, signal: AbortSignal) => Promise<Value>,
) => Promise<Value>;

/** The resources behind a connection. */
export function resourcesOf(ask: Ask): McpResources {
  return {
    list: ({ signal } = {}) =>
      ask("list resources", signal, async (client, within) => {
        if (client.getServerCapabilities()?.resources === undefined) return [];
        const all = await allPages("resources", async (params) => {
          const { resources, nextCursor } = await client.request({ method: "resources/list", params }, limited(within));
          return { entries: resources, nextCursor };
        });
        return all.map(({ uri, name, title, description, mimeType, size }) =>
          defined({ uri, name, title, description, mimeType, size }),
        );
      }),
    templates: ({ signal } = {}) =>
      ask("list resource templates", signal, async (client, within) => {
        if (client.getServerCapabilities()?.resources === undefined) return [];
        const all = await allPages("resource templates", async (params) => {
          const method = "resources/templates/list";
          const { resourceTemplates, nextCursor } = await client.request({ method, params }, limited(within));
          return { entries: resourceTemplates, nextCursor };
        });
        return all.map(({ uriTemplate, name, title, description, mimeType }) =>
          defined({ uriTemplate, name, title, description, mimeType }),
        );
      }),
    read: (uri, { signal } = {}) =>
      ask(`read ${uri}`, signal, async (client, within) => {
        const { contents } = await client.request({ method: "resources/read", params: { uri } }, limited(within));
        return contents.map((part): McpResourceContents => {
          const type = part.mimeType === undefined ? {} : { mimeType: part.mimeType };
          return "text" in part
            ? { uri: part.uri, ...type, text: part.text }
            : { uri: part.uri, ...type, bytes: Buffer.from(part.blob, "base64") };
        });
      }),
  };
}

/** The prompts behind a connection. */
export function promptsOf(ask: Ask): McpPrompts {
  return {
    list: ({ signal } = {}) =>
      ask("list prompts", signal, async (client, within) => {
        if (client.getServerCapabilities()?.prompts === undefined) return [];
        const all = await allPages("prompts", async (params) => {
          const { prompts, nextCursor } = await client.request({ method: "prompts/list", params }, limited(within));
          return { entries: prompts, nextCursor };
        });
        return all.map(({ name, title, description, arguments: args = [] }) => ({
          ...defined({ name, title, description }),
          arguments: args.map((arg) => ({
            ...defined({ name: arg.name, description: arg.description }),
            required: arg.required ?? false,
          })),
        }));
      }),
    get: (name, args = {}, { signal } = {}) =>
      ask(`get the prompt "${name}"`, signal, async (client, within) => {
        const params = { name, arguments: { ...args } };
        const { description, messages } = await client.request({ method: "prompts/get", params }, limited(within));
        return {
          ...defined({ description }),
          messages: messages.map(({ role, content }, index) => messageOf(name, role, content, index)),
        };
      }),
  };
}

type Block = Parameters<typeof contentOfBlocks>[0][number];

function messageOf(prompt: string, role: "user" | "assistant", block: Block, index: number): Message {
  const { content, artifacts } = contentOfBlocks([block]);
  const files = artifacts.map(({ name, mimeType, body }) => ({
    type: "file" as const,
    name,
    mimeType,
    data: Buffer.from(body).toString("base64"),
  }));
  const said = JSON.stringify([prompt, index, role, block]);
  const id = `prompt_${createHash("sha256").update(said).digest("hex").slice(0, 16)}`;
  const parts = content.flatMap((part) => (part.type === "text" || part.type === "image" ? [part] : []));
  if (role === "user") return { role, id, content: [...parts, ...files] };
  const texts = parts.flatMap((part) => (part.type === "text" ? [part] : []));
  return { role, id, finish: "stop", content: [...texts, ...files] };
}

function limited(signal: AbortSignal): { readonly signal: AbortSignal; readonly timeout: number } {
  return { signal, timeout: unlimitedMs };
}

type Defined<Given> = { [Key in keyof Given as undefined extends Given[Key] ? never : Key]: Given[Key] } & {
  [Key in keyof Given as undefined extends Given[Key] ? Key : never]?: Exclude<Given[Key], undefined>;
};

/** An object without what is undefined. */
function defined<Given extends object>(given: Given): Defined<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Defined<Given>;
}

/** A request that failed, as an error of ours. */
export function requestFailed(
  server: string,
  what: string,
  cause: unknown,
  refusal: Refusal | undefined,
): StatewrightError {
  const why = refusal?.what ?? (cause instanceof Error ? cause.message : String(cause)).slice(0, 500);
  return new StatewrightError("mcp_failed", {
    what: `the MCP server "${server}" could not ${what}: ${why.replace(/\.$/, "")}`,
    next: refusal?.next ?? "List what it offers, or look at its log",
    cause,
  });
}
