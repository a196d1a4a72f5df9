/** What goes to a provider and comes back: tools under the names that its models are shown, canonical ones everywhere else. */
import type { Plan } from "../../compile/plan.ts";
import type { AssistantMessage, Message, ToolMessage } from "../../model/message.ts";
import type { Model, ModelReply, ModelRequest } from "../../model/model.ts";
import { hasNotes, isNoted } from "../../state/message-index.ts";
import { withoutImages } from "./strip-images.ts";

/** The two directions of one model call. */
export interface ModelWire {
  readonly request: ModelRequest;
  readonly canonical: (name: string) => string;
  readonly reply: (reply: ModelReply) => ModelReply;
}

/** A request as the model's provider gets it: without what messages keep for the run, and with its own names of tools. */
export function wireFor(plan: Plan, model: Model, request: ModelRequest): ModelWire {
  const sent = withoutImages(model, withoutNotes(request));
  const aliases = aliasesFor(plan, model);
  if (aliases === undefined) return { request: sent, canonical: asItIs, reply: asItIs };
  const back = new Map([...aliases].map(([canonical, alias]) => [alias, canonical]));
  const shown = (name: string): string => aliases.get(name) ?? name;
  const canonical = (name: string): string => back.get(name) ?? name;
  return { request: named(sent, shown), canonical, reply: (reply) => withCalls(reply, canonical) };
}

/** Names of tools as the model's provider has them; nothing where it has none of its own. */
function aliasesFor({ toolNodes }: Plan, model: Model): ReadonlyMap<string, string> | undefined {
  const id = String(model.id);
  const slash = id.indexOf("/");
  const provider = slash < 0 ? id : id.slice(0, slash);
  let aliases: Map<string, string> | undefined;
  for (const { registry } of toolNodes)
    for (const [canonical, alias] of registry.aliases(provider) ?? [])
      aliases = (aliases ?? new Map<string, string>()).set(canonical, alias);
  return aliases;
}

function asItIs<Value>(value: Value): Value {
  return value;
}

function withoutNotes(request: ModelRequest): ModelRequest {
  if (!hasNotes(request.messages)) return request;
  return {
    ...request,
    messages: request.messages.map((message) => (isNoted(message) ? withoutNote(message) : message)),
  };
}

function withoutNote(noted: AssistantMessage | ToolMessage): Message {
  if (noted.role === "tool") {
    const { terminate: _terminate, usage: _usage, ...message } = noted;
    return message;
  }
  const { offered: _offered, ended: _ended, answeredBy: _answeredBy, lost: _lost, ...message } = noted;
  return message;
}

function named(request: ModelRequest, shown: (name: string) => string): ModelRequest {
  const { toolChoice, providerTools } = request;
  return {
    ...request,
    tools: request.tools.map((tool) => ({ ...tool, name: shown(tool.name) })),
    ...(providerTools && { providerTools: providerTools.map((tool) => ({ ...tool, name: shown(tool.name) })) }),
    ...(typeof toolChoice === "object" ? { toolChoice: { tool: shown(toolChoice.tool) } } : {}),
    messages: request.messages.map((message) => {
      if (message.role === "tool") return { ...message, name: shown(message.name) };
      return message.role === "assistant" ? withCalls(message, shown) : message;
    }),
  };
}

function withCalls<Holder extends Pick<AssistantMessage, "content">>(
  holder: Holder,
  name: (name: string) => string,
): Holder {
  // What no model may answer is refused by name, where replies are checked.
  if (!Array.isArray(holder?.content)) return holder;
  const content = holder.content.map((block) =>
    block?.type === "call" ? { ...block, name: name(block.name) } : block,
  );
  return { ...holder, content };
}
