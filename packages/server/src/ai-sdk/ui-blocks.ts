/** Blocks of messages as parts of the AI SDK, and parts of user messages as blocks. */
import type { AssistantMessage, ContentBlock, FileBlock, ImageBlock, Json, UserMessage } from "@statewright/core";
import type { UiContentPart } from "./ui-chunk.ts";

/** Piece of a model message that a client shows. Neighbouring blocks of one kind are one piece. */
export type MessagePiece =
  | { readonly kind: "text" | "reasoning"; readonly text: string }
  | { readonly kind: "file"; readonly mediaType: string; readonly url: string }
  | {
      readonly kind: "call";
      readonly callId: string;
      readonly name: string;
      readonly input: { readonly value: Json; readonly isInvalid: boolean };
    };

/** Lists the pieces of a model message. Empty text and files without data and URL have none. */
export function listPieces(content: AssistantMessage["content"]): readonly MessagePiece[] {
  const pieces: MessagePiece[] = [];
  for (const block of content) {
    switch (block.type) {
      case "text":
      case "reasoning":
        addText(pieces, block.type, block.text);
        break;
      case "file": {
        const url = getFileUrl(block);
        if (url !== undefined) pieces.push({ kind: "file", mediaType: block.mimeType, url });
        break;
      }
      case "call":
        pieces.push({
          kind: "call",
          callId: block.id,
          name: block.name,
          input:
            block.raw === undefined ? { value: block.args, isInvalid: false } : { value: block.raw, isInvalid: true },
        });
    }
  }
  return pieces;
}

function addText(pieces: MessagePiece[], kind: "text" | "reasoning", text: string): void {
  const last = pieces.at(-1);
  if (text === "") return;
  if (last?.kind === kind) pieces[pieces.length - 1] = { kind, text: last.text + text };
  else pieces.push({ kind, text });
}

/** Address of an image or file: its URL, or its data as a `data:` URL; undefined for a file at a provider. */
function getFileUrl({ mimeType, data, url }: FileBlock | ImageBlock): string | undefined {
  return url ?? (data === undefined ? undefined : `data:${mimeType};base64,${data}`);
}

/** Lists the parts of a user message. */
export function listUserParts({ content }: Pick<UserMessage, "content">): readonly UiContentPart[] {
  return content.map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    const name = block.type === "file" ? block.name : undefined;
    return {
      type: "file",
      mediaType: block.mimeType,
      url: getFileUrl(block) ?? "",
      ...(name === undefined ? {} : { filename: name }),
      ...(block.uploaded === undefined ? {} : { providerReference: block.uploaded }),
    };
  });
}

/** Returns the result of a tool as output: the text or value of a single block, or a list of blocks. */
export function toToolOutput(content: readonly ContentBlock[]): Json {
  const [first] = content;
  if (content.length === 1 && first?.type === "text") return first.text;
  if (content.length === 1 && first?.type === "json") return first.value;
  return content.map(toOutputBlock);
}

function toOutputBlock(block: ContentBlock): Json {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "json":
      return { type: "json", value: block.value };
    case "artifact":
      return { type: "artifact", ...block.ref, preview: block.preview };
    default:
      return {
        type: "file",
        mediaType: block.mimeType,
        url: getFileUrl(block) ?? null,
        ...(block.type === "file" && block.name !== undefined ? { filename: block.name } : {}),
      };
  }
}

/** Returns the result of a failed tool as text. */
export function toErrorText(content: readonly ContentBlock[]): string {
  const output = toToolOutput(content);
  return typeof output === "string" ? output : JSON.stringify(output);
}

/** Converts a part of a user message to a block; undefined for a URL that is neither `data:` nor `http(s):`. */
export function toUserBlock(part: UiContentPart): UserMessage["content"][number] | undefined {
  if (part.type === "text") return { type: "text", text: part.text };
  const source = readSource(part);
  if (source === undefined) return undefined;
  const mimeType = part.mediaType.includes("/") ? part.mediaType : `${part.mediaType}/*`;
  if (mimeType.startsWith("image/")) return { type: "image", mimeType, ...source };
  return { type: "file", mimeType, ...source, ...(part.filename === undefined ? {} : { name: part.filename }) };
}

function readSource({
  url,
  providerReference,
}: Extract<UiContentPart, { readonly type: "file" }>):
  | { readonly data: string }
  | { readonly url: string }
  | { readonly uploaded: Readonly<Record<string, string>> }
  | undefined {
  if (providerReference !== undefined) return { uploaded: providerReference };
  const data = readDataUrl(url);
  if (data !== undefined) return { data };
  return /^https?:/i.test(url) && URL.canParse(url) ? { url } : undefined;
}

/** Base64 data of a `data:` URL; undefined for another URL, or for data that is not base64. */
export function readDataUrl(url: string): string | undefined {
  const match = /^data:[^,]*;base64,([A-Za-z0-9+/]*={0,2})$/i.exec(url);
  return match?.[1];
}
