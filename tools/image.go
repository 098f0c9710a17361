package tools

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // what image.DecodeConfig knows
	_ "image/jpeg"
	_ "image/png"
	"net/http"
)

// Bounds of the images of a reply. They are those of Anthropic's API, the least of the providers':
// a conversation that holds a larger one is refused from then on.
const (
	maxImageSize = 5 << 20 / 4 * 3 // bytes: 5 MiB in base64
	maxImageSide = 8000            // pixels
	maxImages    = 20
)

// imageType returns the MIME type of data that begins so if models are shown pictures of that kind,
// else "".
func imageType(begin []byte) string {
	switch kind := http.DetectContentType(begin); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// newImage returns a picture as models are shown it. The error says why it cannot be shown.
func newImage(data []byte) (Image, error) {
	kind := imageType(data)
	switch {
	case kind == "":
		return Image{}, fmt.Errorf("it is no PNG, JPEG, GIF or WebP")
	case len(data) > maxImageSize:
		return Image{}, imageTooLarge(int64(len(data)))
	case kind == "image/webp": // image knows no WebP, whose sides have up to 16383 pixels
		return Image{MIME: kind, Data: data}, nil
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil:
		return Image{}, fmt.Errorf("it is broken: %w", err)
	case c.Width > maxImageSide || c.Height > maxImageSide:
		return Image{}, fmt.Errorf("it has %d × %d pixels, and a side may have %d: scale it down", c.Width, c.Height, maxImageSide)
	}
	return Image{MIME: kind, Data: data}, nil
}

func imageTooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes, and may have %d: scale it down", size, maxImageSize)
}

// show adds a picture to the reply, and returns a note about it if it cannot be shown.
func (r *Reply) show(data []byte) (note string) {
	i, err := newImage(data)
	if err == nil && len(r.Images) == maxImages {
		err = fmt.Errorf("a reply has at most %d", maxImages)
	}
	if err != nil {
		return fmt.Sprintf("[a picture is not shown: %v]\n", err)
	}
	r.Images = append(r.Images, i)
	return ""
}
