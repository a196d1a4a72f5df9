/** Canonical messages as the prompt of a language model, exactly: the same order, ids, metadata and bytes. */
import type {
  AssistantMessage,
  ContentBlock,
  FileBlock,
  Json,
  JsonObject,
  Message,
  ModelRequest,
  ToolCallBlock,
  ToolMessage,
  UserMessage,
} from "@statewright/core";
import { sentId, sentName } from "./call-names.ts";
import type { Dialect } from "./dialect.ts";
import { keptParts } from "./notes.ts";
import { isObject, type ProviderOptions, present, sentBack } from "./plain.ts";

type WithOptions = { providerOptions?: ProviderOptions };
type TextPart = { type: "text"; text: string } & WithOptions;
type ReasoningPart = { type: "reasoning"; text: string } & WithOptions;
type FilePart<Data> = { type: "file"; mediaType: string; data: Data; filename?: string } & WithOptions;
type CallPart = {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: Json;
  providerExecuted?: boolean;
} & WithOptions;
type Output<Media> =
  | { type: "text" | "error-text"; value: string }
  | { type: "json" | "error-json"; value: Json }
  | { type: "content"; value: ({ type: "text"; text: string } | Media)[] };
type ResultPart<Media> = {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output: Output<Media>;
} & WithOptions;
type AssistantPart<Data, Media, Own> = TextPart | ReasoningPart | FilePart<Data> | CallPart | ResultPart<Media> | Own;

/** One message of a prompt in the dialect of a specification. */
export type PromptMessage<Data, Media, Own> =
  | { role: "system"; content: string }
  | { role: "user"; content: (TextPart | FilePart<Data>)[] }
  | { role: "assistant"; content: AssistantPart<Data, Media, Own>[] }
  | { role: "tool"; content: ResultPart<Media>[] };

/**
 * The prompt of a request for `client`, the provider name of a language model. Answers to the calls of one message stand
 * in one message. Messages without anything to send are left out: providers refuse them. Where an answer can hold no image,
 * the images of the answers stand in a message of the user behind all of them.
 */
export function promptOf<Data, Media, Own>(
  request: Pick<ModelRequest, "instructions" | "messages">,
  client: string,
  dialect: Dialect<Data, Media, Own>,
): PromptMessage<Data, Media, Own>[] {
  const prompt: PromptMessage<Data, Media, Own>[] = [];
  if (request.instructions !== undefined && request.instructions !== "") {
    prompt.push({ role: "system", content: request.instructions });
  }
  let images: (TextPart | FilePart<Data>)[] = [];
  const showImages = (): void => {
    if (images.length > 0) prompt.push({ role: "user", content: images });
    images = [];
  };
  for (const message of request.messages) {
    if (message.role !== "tool") showImages();
    const next = promptMessage(message, client, dialect);
    const last = prompt.at(-1);
    if (next.role === "tool" && last?.role === "tool") last.content.push(...next.content);
    else if (next.content.length > 0) prompt.push(next);
    if (message.role === "tool" && answersInText(client)) images.push(...imagesOf(message, dialect));
  }
  showImages();
  return prompt;
}

/** Chat completions: what a tool answers is text there, and an image in it would be sent as its letters. */
function answersInText(client: string): boolean {
  return client.endsWith(".chat");
}

/** The images of an answer, after a line that says whose they are. */
function imagesOf<Data, Media, Own>(
  { name, content, isError }: ToolMessage,
  dialect: Dialect<Data, Media, Own>,
): (TextPart | FilePart<Data>)[] {
  const images = isError ? [] : content.flatMap((block) => (block.type === "image" ? [filePart(block, dialect)] : []));
  return images.length === 0 ? [] : [{ type: "text", text: `What ${name} has shown:` }, ...images];
}

function promptMessage<Data, Media, Own>(
  message: Message,
  client: string,
  dialect: Dialect<Data, Media, Own>,
): PromptMessage<Data, Media, Own> {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content };
    case "user":
      return { role: "user", content: userParts(message, dialect) };
    case "assistant":
      return { role: "assistant", content: assistantParts(message, client, dialect) };
    case "tool":
      return { role: "tool", content: [resultPart(message, client, dialect)] };
  }
}

function userParts<Data, Media, Own>(
  message: UserMessage,
  dialect: Dialect<Data, Media, Own>,
): (TextPart | FilePart<Data>)[] {
  return message.content.flatMap((block): (TextPart | FilePart<Data>)[] => {
    switch (block.type) {
      case "text":
        return textPart(block);
      case "image":
      case "file":
        return [filePart(block, dialect)];
      default:
        return [];
    }
  });
}

/** The blocks of an answer, and between them what its own client wants back: calls that the provider ran, for instance. */
function assistantParts<Data, Media, Own>(
  message: AssistantMessage,
  client: string,
  dialect: Dialect<Data, Media, Own>,
): AssistantPart<Data, Media, Own>[] {
  const kept = keptParts(message.provider, client);
  const keptAt = (index: number): AssistantPart<Data, Media, Own>[] =>
    kept.filter(({ at }) => at === index).flatMap(({ part }) => keptPart(part, dialect) ?? []);
  const parts = message.content.flatMap((block, index) => [...keptAt(index), ...assistantPart(block, client, dialect)]);
  const behind = kept.filter(({ at }) => at >= message.content.length);
  return [...parts, ...behind.flatMap(({ part }) => keptPart(part, dialect) ?? [])];
}

function assistantPart<Data, Media, Own>(
  block: AssistantMessage["content"][number],
  client: string,
  dialect: Dialect<Data, Media, Own>,
): AssistantPart<Data, Media, Own>[] {
  switch (block.type) {
    case "text":
      return textPart(block);
    case "reasoning":
      return [{ type: "reasoning", text: block.text, ...sentBack(block.provider) }];
    case "file":
      return [filePart(block, dialect)];
    case "call":
      return [callPart(block, client)];
    default:
      return [];
  }
}

function textPart(block: { readonly text: string; readonly provider?: JsonObject | undefined }): TextPart[] {
  const options = sentBack(block.provider);
  return block.text === "" && options.providerOptions === undefined
    ? []
    : [{ type: "text", text: block.text, ...options }];
}

function filePart<Data, Media, Own>(
  block: Omit<FileBlock, "type"> & { readonly provider?: JsonObject | undefined },
  dialect: Dialect<Data, Media, Own>,
): FilePart<Data> {
  return {
    type: "file",
    mediaType: block.mimeType,
    data: dialect.base64(block.data),
    ...present({ filename: block.name }),
    ...sentBack(block.provider),
  };
}

/** Providers refuse arguments that are no object; what the model really wrote is told by the answer to the call. */
function callPart(block: ToolCallBlock, client: string): CallPart {
  return {
    type: "tool-call",
    toolCallId: sentId(client, block.id),
    toolName: sentName(block.name),
    input: block.raw === undefined && isObject(block.args) ? block.args : {},
    ...sentBack(block.provider),
  };
}

function resultPart<Data, Media, Own>(
  message: ToolMessage,
  client: string,
  dialect: Dialect<Data, Media, Own>,
): ResultPart<Media> {
  return {
    type: "tool-result",
    toolCallId: sentId(client, message.callId),
    toolName: sentName(message.name),
    output: outputOf(answersInText(client) ? withoutImages(message) : message, dialect),
  };
}

function withoutImages(message: ToolMessage): ToolMessage {
  if (message.isError || !message.content.some(({ type }) => type === "image")) return message;
  const content = message.content.map((block) =>
    block.type === "image" ? ({ type: "text", text: `[${block.mimeType}, shown below]` } as const) : block,
  );
  return { ...message, content };
}

function outputOf<Data, Media, Own>(message: ToolMessage, dialect: Dialect<Data, Media, Own>): Output<Media> {
  const { content, isError } = message;
  const [first] = content;
  if (first?.type === "json" && content.length === 1) {
    return { type: isError ? "error-json" : "json", value: first.value };
  }
  const media = content.some((block) => block.type === "image" || block.type === "file");
  if (media && !isError) return { type: "content", value: content.map((block) => resultBlock(block, dialect)) };
  return { type: isError ? "error-text" : "text", value: content.map(blockText).join("\n") };
}

function resultBlock<Data, Media, Own>(
  block: ContentBlock,
  dialect: Dialect<Data, Media, Own>,
): { type: "text"; text: string } | Media {
  if (block.type === "image") return dialect.media({ mediaType: block.mimeType, data: block.data });
  if (block.type !== "file") return { type: "text", text: blockText(block) };
  return dialect.media({ mediaType: block.mimeType, data: block.data, ...present({ filename: block.name }) });
}

/** A block as text. No specification has an error with media in it, so that a failed tool's image is only named. */
function blockText(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "json":
      return JSON.stringify(block.value);
    case "artifact":
      return block.preview;
    case "image":
    case "file":
      return `[${block.mimeType}, not shown]`;
    default:
      return "";
  }
}

/** A kept part as its client wants it back; sources, approvals and parts that nobody knows are not sent. */
function keptPart<Data, Media, Own>(
  part: JsonObject,
  dialect: Dialect<Data, Media, Own>,
): AssistantPart<Data, Media, Own> | undefined {
  const { type, toolCallId, toolName, input, mediaType, url } = part;
  const options = sentBack(part["providerMetadata"] as JsonObject | undefined);
  if (type === "file" && typeof mediaType === "string" && typeof url === "string" && URL.canParse(url)) {
    return { type, mediaType, data: dialect.url(new URL(url)), ...options };
  }
  if (typeof toolCallId !== "string" || typeof toolName !== "string") return dialect.own(part);
  if (type === "tool-call") {
    return { type, toolCallId, toolName, input: input ?? {}, providerExecuted: true, ...options };
  }
  return type === "tool-result" ? { type, toolCallId, toolName, output: ranOutput(part), ...options } : undefined;
}

function ranOutput({ result = null, isError }: JsonObject): Output<never> {
  const failed = isError === true;
  if (typeof result === "string") return { type: failed ? "error-text" : "text", value: result };
  return { type: failed ? "error-json" : "json", value: result };
}
