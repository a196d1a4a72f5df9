/** Schemas of artifacts and uploaded files. */
import * as z from "zod";
import { before, createPage, id, limit, nameSchema, time, type WirePage } from "./common.ts";

/** Large output of a tool call. */
export interface WireArtifact {
  readonly key: string;
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
  readonly isText: boolean;
  readonly tool: string;
  readonly run: string;
  readonly callId: string;
  readonly at: string;
}

/** Large output of a tool call. */
const artifact: z.ZodType<WireArtifact> = nameSchema(
  "Artifact",
  z.strictObject({
    key: z.string().describe("SHA-256 of the body"),
    handle: z.string().describe("Short name, as the model sees it"),
    name: z.string(),
    mimeType: z.string(),
    bytes: z.number().int(),
    isText: z.boolean(),
    tool: z.string(),
    run: z.string(),
    callId: z.string(),
    at: time,
  }),
);

/** Page of artifacts, oldest first. */
export const artifactPage: z.ZodType<WirePage<WireArtifact>> = createPage("ArtifactPage", artifact);

/** Filter of artifacts. */
export interface WireArtifactQuery {
  readonly run?: string | undefined;
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** Filter of artifacts. */
export const artifactQuery: z.ZodType<WireArtifactQuery> = z.strictObject({
  run: id.optional(),
  before: before.optional(),
  limit: limit.optional(),
});

/** Name and type of an uploaded file. */
export interface WireFileQuery {
  readonly name?: string | undefined;
  readonly mimeType?: string | undefined;
}

/** Name and type of an uploaded file. */
export const fileQuery: z.ZodType<WireFileQuery> = z.strictObject({
  name: z.string().min(1).max(255).optional(),
  mimeType: z.string().min(3).max(255).optional().describe("Default: the header Content-Type"),
});

/** Uploaded file, to be named in a message of its thread. */
export interface WireFile {
  readonly id: string;
  readonly name?: string | undefined;
  readonly mimeType: string;
  readonly bytes: number;
  readonly expiresAt: string;
  readonly block: {
    readonly type: "image" | "file";
    readonly mimeType: string;
    readonly uploaded: { readonly thread: string };
    readonly name?: string | undefined;
  };
}

/** Uploaded file, to be named in a message of its thread. */
export const file: z.ZodType<WireFile> = nameSchema(
  "File",
  z.strictObject({
    id: z.string(),
    name: z.string().optional(),
    mimeType: z.string(),
    bytes: z.number().int(),
    expiresAt: time.describe("The file is deleted then; a message that named it before keeps its content"),
    block: z
      .strictObject({
        type: z.enum(["image", "file"]),
        mimeType: z.string(),
        uploaded: z.strictObject({ thread: z.string() }),
        name: z.string().optional(),
      })
      .describe("Content block for a message of this thread"),
  }),
);
