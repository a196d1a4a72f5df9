/** Wire format of a provider: tools have the provider's aliases in requests, and canonical names everywhere else. */
import { toWellFormedData, toWellFormedSaved } from "../../base/well-formed.ts";
import type { Plan } from "../../compile/plan.ts";
import type { AssistantMessage, Message, TextBlock } from "../../model/message.ts";
import type { Model, ModelReply, ModelRequest } from "../../model/model.ts";
import { toSentMessages } from "../../state/message-index.ts";

/** Request and reply conversion of one model call. */
export interface ModelWire {
  readonly request: ModelRequest;
  readonly toCanonicalName: (name: string) => string;
  readonly convertReply: (reply: ModelReply) => ModelReply;
}

/**
 * Creates the wire format of a request: removes run-internal message fields, and renames tools to the provider's
 * aliases.
 */
export function createWire(plan: Plan, model: Model, request: ModelRequest): ModelWire {
  const sent = stripImages(model, toSentRequest(request));
  const aliases = collectAliases(plan, model);
  if (aliases === undefined) return { request: sent, toCanonicalName: keepUnchanged, convertReply: keepUnchanged };
  const canonicalNames = new Map([...aliases].map(([canonical, alias]) => [alias, canonical]));
  const toAlias = (name: string): string => aliases.get(name) ?? name;
  const canonical = (name: string): string => canonicalNames.get(name) ?? name;
  return {
    request: renameTools(sent, toAlias),
    toCanonicalName: canonical,
    convertReply: (reply) => renameCalls(reply, canonical),
  };
}

/** Removes run notes, and replaces lone surrogates, which providers refuse; a thread may have saved them before. */
function toSentRequest({ messages, tools, ...settings }: ModelRequest): ModelRequest {
  return {
    ...toWellFormedData(settings),
    messages: toSentMessages(messages),
    tools: tools.map(toWellFormedSaved),
  };
}

/** Collects the tool aliases of the model's provider; undefined without aliases. */
function collectAliases({ toolNodes }: Plan, model: Model): ReadonlyMap<string, string> | undefined {
  const id = String(model.id);
  const slash = id.indexOf("/");
  const provider = slash < 0 ? id : id.slice(0, slash);
  let aliases: Map<string, string> | undefined;
  for (const { registry } of toolNodes)
    for (const [canonical, alias] of registry.aliases(provider) ?? [])
      aliases = (aliases ?? new Map<string, string>()).set(canonical, alias);
  return aliases;
}

function keepUnchanged<Value>(value: Value): Value {
  return value;
}

function renameTools(request: ModelRequest, toAlias: (name: string) => string): ModelRequest {
  const { toolChoice, providerTools } = request;
  return {
    ...request,
    tools: request.tools.map((tool) => ({ ...tool, name: toAlias(tool.name) })),
    ...(providerTools && { providerTools: providerTools.map((tool) => ({ ...tool, name: toAlias(tool.name) })) }),
    ...(typeof toolChoice === "object" ? { toolChoice: { tool: toAlias(toolChoice.tool) } } : {}),
    messages: request.messages.map((message) => {
      if (message.role === "tool") return { ...message, name: toAlias(message.name) };
      return message.role === "assistant" ? renameCalls(message, toAlias) : message;
    }),
  };
}

function renameCalls<Holder extends Pick<AssistantMessage, "content">>(
  holder: Holder,
  rename: (name: string) => string,
): Holder {
  // Invalid replies are rejected with a clear error in `checkReply`.
  if (!Array.isArray(holder?.content)) return holder;
  const content = holder.content.map((block) =>
    block?.type === "call" ? { ...block, name: rename(block.name) } : block,
  );
  return { ...holder, content };
}

/** Replaces each image of a request with a line of text, for a model that declares no image input. */
function stripImages({ images }: Model, request: ModelRequest): ModelRequest {
  if (images !== false || !request.messages.some(hasImage)) return request;
  return { ...request, messages: request.messages.map(stripMessageImages) };
}

function hasImage(message: Message): boolean {
  return typeof message.content !== "string" && message.content.some(({ type }) => type === "image");
}

function stripMessageImages(message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block) => (block.type === "image" ? toImageNote(block.mimeType) : block));
  return { ...message, content } as Message;
}

function toImageNote(mimeType: string): TextBlock {
  return { type: "text", text: `[An image (${mimeType}) that this model cannot see.]` };
}
