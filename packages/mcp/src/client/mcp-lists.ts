/** Resources and prompts of an MCP server, as plain data. */
import { createHash } from "node:crypto";
import type { Client } from "@modelcontextprotocol/client";
import { type Message, StatewrightError } from "@statewright/core";
import type { Refusal } from "./http-refusal.ts";
import { toContent } from "./mcp-result.ts";
import { listAllPages, unlimitedMs } from "./mcp-session.ts";

/** Readable resource. */
export interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
}

/** Resource template: a URI with placeholders, per RFC 6570. */
export interface McpResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** Part of a resource: text or bytes. */
export type McpResourceContents = { readonly uri: string; readonly mimeType?: string } & (
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
);

/** Resources of an MCP server. */
export interface McpResources {
  /** Lists the resources of the server. */
  list(options?: McpRequestOptions): Promise<readonly McpResource[]>;
  /** Lists the templates of resources of the server. */
  listTemplates(options?: McpRequestOptions): Promise<readonly McpResourceTemplate[]>;
  /** Throws `mcp_failed` for an unknown resource. */
  read(uri: string, options?: McpRequestOptions): Promise<readonly McpResourceContents[]>;
}

/** Prompt of an MCP server. */
export interface McpPrompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments: readonly { readonly name: string; readonly description?: string; readonly required: boolean }[];
}

/** Prompts of an MCP server. */
export interface McpPrompts {
  /** Lists the prompts of the server. */
  list(options?: McpRequestOptions): Promise<readonly McpPrompt[]>;
  /** Returns the messages of a prompt, for the input of an agent. Throws `mcp_failed` for an unknown prompt. */
  get(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: McpRequestOptions,
  ): Promise<{ readonly description?: string; readonly messages: readonly Message[] }>;
}

/** Options of a request. */
export interface McpRequestOptions {
  /** Aborts the request. */
  readonly signal?: AbortSignal;
}

/** Runs a request with the client of the active connection, within the request timeout. */
export type RequestRunner = <Value>(
  action: string,
  signal: AbortSignal | undefined,
  work: (client: Client, signal: AbortSignal) => Promise<Value>,
) => Promise<Value>;

/** Creates the resources of a connection. */
export function createResources(runRequest: RequestRunner): McpResources {
  return {
    list: ({ signal } = {}) =>
      runRequest("list resources", signal, async (client, requestSignal) => {
        if (client.getServerCapabilities()?.resources === undefined) return [];
        const all = await listAllPages("resources", async (params) => {
          const { resources, nextCursor } = await client.request(
            { method: "resources/list", params },
            createRequestOptions(requestSignal),
          );
          return { entries: resources, nextCursor };
        });
        return all.map(({ uri, name, title, description, mimeType, size }) =>
          omitUndefined({ uri, name, title, description, mimeType, size }),
        );
      }),
    listTemplates: ({ signal } = {}) =>
      runRequest("list resource templates", signal, async (client, requestSignal) => {
        if (client.getServerCapabilities()?.resources === undefined) return [];
        const all = await listAllPages("resource templates", async (params) => {
          const method = "resources/templates/list";
          const { resourceTemplates, nextCursor } = await client.request(
            { method, params },
            createRequestOptions(requestSignal),
          );
          return { entries: resourceTemplates, nextCursor };
        });
        return all.map(({ uriTemplate, name, title, description, mimeType }) =>
          omitUndefined({ uriTemplate, name, title, description, mimeType }),
        );
      }),
    read: (uri, { signal } = {}) =>
      runRequest(`read ${uri}`, signal, async (client, requestSignal) => {
        const { contents } = await client.request(
          { method: "resources/read", params: { uri } },
          createRequestOptions(requestSignal),
        );
        return contents.map((part): McpResourceContents => {
          const type = part.mimeType === undefined ? {} : { mimeType: part.mimeType };
          return "text" in part
            ? { uri: part.uri, ...type, text: part.text }
            : { uri: part.uri, ...type, bytes: Buffer.from(part.blob, "base64") };
        });
      }),
  };
}

/** Creates the prompts of a connection. */
export function createPrompts(runRequest: RequestRunner): McpPrompts {
  return {
    list: ({ signal } = {}) =>
      runRequest("list prompts", signal, async (client, requestSignal) => {
        if (client.getServerCapabilities()?.prompts === undefined) return [];
        const all = await listAllPages("prompts", async (params) => {
          const { prompts, nextCursor } = await client.request(
            { method: "prompts/list", params },
            createRequestOptions(requestSignal),
          );
          return { entries: prompts, nextCursor };
        });
        return all.map(({ name, title, description, arguments: args = [] }) => ({
          ...omitUndefined({ name, title, description }),
          arguments: args.map((arg) => ({
            ...omitUndefined({ name: arg.name, description: arg.description }),
            required: arg.required ?? false,
          })),
        }));
      }),
    get: (name, args = {}, { signal } = {}) =>
      runRequest(`get prompt "${name}"`, signal, async (client, requestSignal) => {
        const params = { name, arguments: { ...args } };
        const { description, messages } = await client.request(
          { method: "prompts/get", params },
          createRequestOptions(requestSignal),
        );
        return {
          ...omitUndefined({ description }),
          messages: messages.map(({ role, content }, index) => toMessage(name, role, content, index)),
        };
      }),
  };
}

type Block = Parameters<typeof toContent>[0][number];

function toMessage(prompt: string, role: "user" | "assistant", block: Block, index: number): Message {
  const { content, artifacts } = toContent([block]);
  const files = artifacts.map(({ name, mimeType, body }) => ({
    type: "file" as const,
    name,
    mimeType,
    data: Buffer.from(body).toString("base64"),
  }));
  const identity = JSON.stringify([prompt, index, role, block]);
  const id = `prompt_${createHash("sha256").update(identity).digest("hex").slice(0, 16)}`;
  const parts = content.flatMap((part) => (part.type === "text" || part.type === "image" ? [part] : []));
  if (role === "user") return { role, id, content: [...parts, ...files] };
  const texts = parts.flatMap((part) => (part.type === "text" ? [part] : []));
  return { role, id, finish: "stop", content: [...texts, ...files] };
}

function createRequestOptions(signal: AbortSignal): { readonly signal: AbortSignal; readonly timeout: number } {
  return { signal, timeout: unlimitedMs };
}

type WithoutUndefined<Value> = { [Key in keyof Value as undefined extends Value[Key] ? never : Key]: Value[Key] } & {
  [Key in keyof Value as undefined extends Value[Key] ? Key : never]?: Exclude<Value[Key], undefined>;
};

/** Returns the object without undefined values. */
function omitUndefined<Value extends object>(object: Value): WithoutUndefined<Value> {
  return Object.fromEntries(
    Object.entries(object).filter(([, value]) => value !== undefined),
  ) as WithoutUndefined<Value>;
}

/** Failed request. */
export interface FailedRequest {
  readonly server: string;
  /** Verb phrase for messages, such as `list resources`. */
  readonly action: string;
  readonly cause: unknown;
  readonly refusal: Refusal | undefined;
}

/** Creates the error of a failed request. */
export function createRequestError({ server, action, cause, refusal }: FailedRequest): StatewrightError {
  const reason = refusal?.what ?? (cause instanceof Error ? cause.message : String(cause)).slice(0, 500);
  return new StatewrightError("mcp_failed", {
    what: `MCP server "${server}" could not ${action}: ${reason.replace(/\.$/, "")}`,
    next: refusal?.next ?? "List the resources and prompts of the server, or check its log",
    cause,
  });
}
