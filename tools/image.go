package tools

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // for image.DecodeConfig
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net/http"
)

// Bounds of the images of a reply. They are the bounds of Anthropic's API, which are the smallest
// of the providers'. A provider refuses every later call of a conversation that holds a larger
// image.
const (
	maxImageSize = 5 << 20 / 4 * 3 // bytes: 5 MiB in base64
	maxImageSide = 8000            // pixels
	maxImages    = 20
)

// imageType returns the MIME type of a file that begins so, if models can see pictures of that
// type; else "".
func imageType(begin []byte) string {
	switch kind := http.DetectContentType(begin); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// newImage returns a picture in the form that models see. The error says why it cannot be shown.
func newImage(data []byte) (Image, error) {
	kind := imageType(data)
	switch {
	case kind == "":
		return Image{}, errors.New("it is not a PNG, JPEG, GIF or WebP")
	case len(data) > maxImageSize:
		return Image{}, imageTooLarge(int64(len(data)))
	}
	var width, height int
	var err error
	if kind == "image/webp" { // package image does not know it
		width, height, err = sizeOfWebP(data)
	} else {
		var c image.Config
		c, _, err = image.DecodeConfig(bytes.NewReader(data))
		width, height = c.Width, c.Height
	}
	switch {
	case err != nil:
		return Image{}, fmt.Errorf("it is broken: %w", err)
	case width > maxImageSide || height > maxImageSide:
		return Image{}, fmt.Errorf("it has %d × %d pixels, and a side may have at most %d: scale "+
			"it "+
			"down",
			width, height, maxImageSide)
	}
	return Image{MIME: kind, Data: data}, nil
}

// sizeOfWebP returns the sides of a WebP picture in pixels. They are in its first chunk, whose form
// depends on its name: VP8 for a lossy picture, VP8L for a lossless one, VP8X for the canvas of a
// picture with more chunks.
func sizeOfWebP(data []byte) (width, height int, err error) {
	const begin = 20 // where the chunk's content begins
	if len(data) < begin+10 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	chunk := data[begin:]
	switch string(data[12:16]) {
	case "VP8 ":
		const side = 1<<14 - 1 // the other two bits tell the scale
		return int(binary.LittleEndian.Uint16(chunk[6:])) & side,
			int(binary.LittleEndian.Uint16(chunk[8:])) & side, nil
	case "VP8L":
		bits := binary.LittleEndian.Uint32(chunk[1:])
		return int(bits&(1<<14-1)) + 1, int(bits>>14&(1<<14-1)) + 1, nil
	case "VP8X":
		// Each side less one, in 24 bits.
		uint24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return uint24(chunk[4:]) + 1, uint24(chunk[7:]) + 1, nil
	}
	return 0, 0, errors.New("a WebP without a picture")
}

func imageTooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes, and may have at most %d: scale it down", size, maxImageSize)
}

// show adds a picture to the reply. If it cannot be shown, show returns a note that says why.
func (r *Reply) show(data []byte) (note string) {
	i, err := newImage(data)
	if err == nil && len(r.Images) == maxImages {
		err = fmt.Errorf("a reply has at most %d pictures", maxImages)
	}
	if err != nil {
		return fmt.Sprintf("[a picture is not shown: %v]\n", err)
	}
	r.Images = append(r.Images, i)
	return ""
}
