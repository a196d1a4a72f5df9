/** Stream parts of all specifications: part names are the same in V2, V3 and V4, and later versions add parts. */
import type { LanguageModelV2StreamPart, LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";

/** Stream part of any specification. */
export type StreamPart = LanguageModelV2StreamPart | LanguageModelV3StreamPart | LanguageModelV4StreamPart;

/** Stream parts of a type. */
export type Part<Type extends StreamPart["type"]> = Extract<StreamPart, { type: Type }>;
